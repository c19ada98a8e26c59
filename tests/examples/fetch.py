"""fetch gets what an https server has, shows a bar, and trusts no server without reason."""

import http.server
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

FETCH = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "fetch"
SECONDS_MAX = 60
BODY = bytes(range(256)) * 20_000


def fail(text):
    print(f"fetch: {text}")
    sys.exit(1)


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        if self.path == "/file":
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)
        elif self.path == "/there":
            self.send_response(302)
            self.send_header("Location", "file")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY[:1000])
            self.close_connection = True
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # clients that do not trust it


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "key.pem",
                    "-out", folder / "certificate.pem", "-days", "1", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)


def run(*words, status=0):
    ended = subprocess.run([FETCH, *words], capture_output=True, timeout=SECONDS_MAX, check=False)
    if ended.returncode != status:
        fail(f"{words}: status {ended.returncode}, not {status}: {ended.stderr.decode()}")
    return ended.stdout, ended.stderr.decode()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trust.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        server = Server(("127.0.0.1", 0), Answers)
        server.daemon_threads = True
        server.socket = trust.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"https://localhost:{server.server_port}"
        trusted = ["--cacert", folder / "certificate.pem"]

        out, said = run(f"{at}/file", *trusted)
        if out != BODY:
            fail("standard output has something else")
        if "100%" not in said or "#" * 40 not in said or "5.1 MB" not in said:
            fail(f"there is no bar: {said!r}")
        run(f"{at}/there", "-o", folder / "file", *trusted)
        if (folder / "file").read_bytes() != BODY or (folder / "file.part").exists():
            fail("the file has something else")

        if "certificate verify failed" not in run(f"{at}/file", status=1)[1]:
            fail("it trusts anybody")
        if "hostname mismatch" not in run(f"https://127.0.0.1:{server.server_port}/file", *trusted, status=1)[1] \
                .replace("IP address mismatch", "hostname mismatch"):
            fail("it takes a certificate for another host")
        if run(f"{at}/file", "--insecure")[0] != BODY:
            fail("--insecure refuses")
        if "404" not in run(f"{at}/nothing", *trusted, status=1)[1]:
            fail("404 is a success")
        if "in the middle" not in run(f"{at}/cut", "-o", folder / "cut", *trusted, status=1)[1] or (folder / "cut").exists():
            fail("half a file is a success")
        (folder / "file").write_text("what was there")
        run(f"{at}/cut", "-o", folder / "file", *trusted, status=1)
        if (folder / "file").read_text() != "what was there":
            fail("half a file replaces a whole one")
        (folder / "folder").mkdir()
        run(f"{at}/file", "-o", folder / "folder", *trusted, status=1)
        if left := list(folder.glob("*.part")):
            fail(f"what did not come about is left behind: {left}")
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            run(f"https://localhost:{closed.getsockname()[1]}/", status=1)
        for words in [], ["-o"], ["a", "b"], ["--what", at]:
            run(*words, status=2)
        run("gopher://localhost/", status=1)


main()
