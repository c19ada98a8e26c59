"""httpd serves HTTPS: curl, OpenSSL's client and Python's agree with it, and a renewed certificate costs no request."""

import hashlib
import http.client
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading

HTTPD = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "httpd"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "httpd_https_check"
SECONDS_MAX = 60


def fail(text):
    print(f"httpd: {text}")
    sys.exit(1)


def check(what, got, wanted):
    if got != wanted:
        fail(f"{what}: {got!r}, not {wanted!r}")


def run(*command, asked="", status=0):
    ended = subprocess.run(command, input=asked, capture_output=True, text=True, errors="replace", timeout=SECONDS_MAX, check=False)
    if status is not None and ended.returncode != status:
        fail(f"{command}: {ended.returncode} {ended.stdout} {ended.stderr}")
    return ended.stdout + ended.stderr


def renew():
    """Makes a certificate that is its own authority. Both files are replaced, as a program that renews them does."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout", FOLDER / "key.new", "-out", FOLDER / "certificate.new")
    (FOLDER / "key.new").rename(FOLDER / "key.pem")
    (FOLDER / "certificate.new").rename(FOLDER / "certificate.pem")


def start(environment):
    server = subprocess.Popen([HTTPD, FOLDER / "www", "--certificate", FOLDER / "certificate.pem", "--key", FOLDER / "key.pem",
                               "--plain-port", "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    ports = []
    for words in "listening on ", "redirecting from ":
        line = server.stdout.readline()
        if not line.startswith(words):
            fail(f"it said {line} {server.stderr.read()}")
        ports.append(int(line.rsplit(":", 1)[1]))
    return server, *ports


def check_curl(port, plain_port):
    curl = ["curl", "--silent", "--show-error", "--cacert", FOLDER / "certificate.pem", "--max-time", str(SECONDS_MAX)]
    for version in "1.2", "1.3":
        only = ["--tlsv" + version, "--tls-max", version]
        for protocol in "1.1", "2":
            said = run(*curl, *only, "--http" + protocol, "--write-out", " by %{http_version}", f"https://localhost:{port}/plaintext")
            check("curl " + version, said, "Hello, World! by " + protocol)
        run(*curl, *only, "--output", FOLDER / "got.bin", f"https://localhost:{port}/large.bin")
        check("a large file", *(hashlib.sha256(one.read_bytes()).digest() for one in (FOLDER / "got.bin", FOLDER / "www" / "large.bin")))
    check("the way there", run(*curl, "--location", f"http://localhost:{plain_port}/plaintext?a=b"), "Hello, World!")
    check("without TLS", run(*curl, "--output", os.devnull, "--write-out", "%{http_code}", f"http://localhost:{port}/plaintext"), "400")


def s_client(port, *options, asked="", status=0):
    return run("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", FOLDER / "certificate.pem", *options,
               asked=asked, status=status)


def check_openssl(port):
    for version in "-tls1_2", "-tls1_3":
        said = s_client(port, version, "-alpn", "http/1.1,h2", "-servername", "localhost", "-verify_return_error")
        if "ALPN protocol: h2" not in said or "Verify return code: 0 (ok)" not in said:
            fail(said)
    for options in (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_2", "-cipher", "AES128-SHA256"],
                    ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], ["-alpn", "spdy/3"]):
        if "alert" not in s_client(port, *options, status=1):
            fail(f"{options} were not refused")


def check_renegotiation(port):
    """In OpenSSL's client the line R renegotiates. A server that does not allow it says so at once."""
    client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    while "Extended master secret" not in said:
        said += client.stdout.readline() or fail(said)
    client.stdin.write("R\n")
    client.stdin.flush()
    watch = threading.Timer(SECONDS_MAX, client.kill)
    watch.start()
    said = client.stdout.read()
    watch.cancel()
    client.stdin.close()
    client.wait()
    if "RENEGOTIATING" not in said or "no renegotiation" not in said:
        fail(said)


def tls_of_python():
    trust = ssl.create_default_context(cafile=str(FOLDER / "certificate.pem"))
    trust.maximum_version = ssl.TLSVersion.TLSv1_2  # a session of TLS 1.3 has no ticket before the first answer
    return trust


def check_resumption(server, port):
    """A session is resumed, also after the certificate was read again."""
    trust, session = tls_of_python(), None
    for i in range(3):
        with trust.wrap_socket(socket.create_connection(("127.0.0.1", port), SECONDS_MAX), server_hostname="localhost",
                               session=session) as peer:
            check("resumed", peer.session_reused, i > 0)
            session = peer.session
            peer.sendall(b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while part := peer.recv(1000):
                answer += part
            check("the answer", answer.rsplit(b"\r\n", 1)[1], b"Hello, World!")
        reload(server)


def reload(server):
    server.send_signal(signal.SIGHUP)
    check("SIGHUP", server.stdout.readline(), "read the certificate again\n")


def check_reload(server, port):
    """Clients ask all the time, on connections that they keep and on new ones, while certificates are renewed."""
    ended, answered, failures, counts = threading.Event(), threading.Semaphore(0), [], []

    def ask(keeps):
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # each certificate is its own authority
        client, count = None, 0
        try:
            while not ended.is_set():
                client = client or http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS_MAX, context=trust)
                client.request("GET", "/plaintext")
                check("while it changes", client.getresponse().read(), b"Hello, World!")
                count += 1
                answered.release()
                if not keeps:
                    client.close()
                    client = None
        except (OSError, http.client.HTTPException, SystemExit) as failure:
            failures.append(failure)
        counts.append(count)

    threads = [threading.Thread(target=ask, args=(keeps,)) for keeps in (True, True, False, False)]
    for one in threads:
        one.start()
    shown = set()
    for _ in range(5):
        renew()
        reload(server)
        shown.add(ssl.get_server_certificate(("127.0.0.1", port)))
        for _ in range(8):
            if not answered.acquire(timeout=SECONDS_MAX):
                fail("no answers come")
    ended.set()
    for one in threads:
        one.join()
    check("failures while it changes", failures, [])
    check("certificates", len(shown), 5)
    if not all(counts):
        fail(f"requests: {counts}")
    (FOLDER / "key.pem").write_text("damaged")
    server.send_signal(signal.SIGHUP)
    said = server.stderr.readline()
    if "key" not in said:
        fail(f"of a damaged key: {said}")
    check("the last good certificate", ssl.get_server_certificate(("127.0.0.1", port)) in shown, True)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "www").mkdir(parents=True)
    (FOLDER / "www" / "large.bin").write_bytes(os.urandom(3_000_000))
    for environment in {"TROUPE_IO": "epoll"}, {"TROUPE_IO": "io_uring"}:
        renew()
        server, port, plain_port = start(environment)
        check_curl(port, plain_port)
        check_openssl(port)
        check_renegotiation(port)
        check_resumption(server, port)
        check_reload(server, port)
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=SECONDS_MAX)[1]
        check("its end", (server.returncode, said), (0, ""))
    for arguments in ["a", "--certificate", "b"], ["a", "--plain-port", "0"]:
        refused = subprocess.run([HTTPD, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        check(arguments, (refused.returncode, refused.stderr.startswith("usage:")), (2, True))
    print("httpd: all is served over TLS")


main()
