"""httpd is restarted by SIGUSR2 while clients ask all the time, without TLS, with TLS, and by HTTP/2: no request fails."""

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
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "httpd_restart_check"
SECONDS_MAX = 60
RESTARTS = 3


def fail(text):
    print(f"httpd: {text}")
    sys.exit(1)


def check(what, got, wanted):
    if got != wanted:
        fail(f"{what}: {got!r}, not {wanted!r}")


class Manager:
    """What a service manager hears: the datagrams at NOTIFY_SOCKET."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0troupe-httpd-restart-" + str(os.getpid()))
        self.socket.settimeout(SECONDS_MAX)
        self.name = "@troupe-httpd-restart-" + str(os.getpid())

    def wait_for(self, word):
        """Returns the first message with that word."""
        while True:
            said = self.socket.recv(1000).decode()
            if word in said:
                return said


def start(manager, *arguments):
    server = subprocess.Popen([HTTPD, FOLDER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "NOTIFY_SOCKET": manager.name})
    line = server.stdout.readline()
    if not line.startswith("listening on "):
        fail(f"it said {line} {server.stderr.read()}")
    manager.wait_for("READY=1")
    return server, int(line.rsplit(":", 1)[1])


def untrusting():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Clients:
    """Threads that ask until they are told to end."""

    def __init__(self, *asks):
        self.ended, self.answered, self.failures = threading.Event(), threading.Semaphore(0), []
        self.threads = [threading.Thread(target=self._loop, args=(ask,)) for ask in asks]
        for one in self.threads:
            one.start()

    def _loop(self, ask):
        try:
            while not self.ended.is_set():
                ask()
                self.answered.release()
        except (OSError, http.client.HTTPException, SystemExit, RuntimeError) as failure:
            self.failures.append(repr(failure))
            self.answered.release()

    def wait(self, count):
        for _ in range(count):
            if not self.answered.acquire(timeout=SECONDS_MAX):
                fail("no answers come")

    def end(self):
        self.ended.set()
        for one in self.threads:
            one.join()
        check("failures", self.failures, [])


def kept(connect):
    """Asks on a connection that is kept for as long as the server keeps it."""
    client = None

    def ask():
        nonlocal client
        client = client or connect()
        client.request("GET", "/plaintext")
        answer = client.getresponse()
        if answer.read() != b"Hello, World!":
            raise RuntimeError(f"status {answer.status}")
        if answer.will_close:
            client.close()
            client = None

    return ask


def clients_by_curl(port):
    if not shutil.which("curl"):
        print("httpd_restart: partly skipped: needs curl")
        return []
    return [by_curl(port), by_curl(port)]


def by_curl(port):
    """Asks by HTTP/2, many requests at a time on few connections."""

    def ask():
        said = subprocess.run(["curl", "--silent", "--show-error", "--insecure", "--http2", "--parallel", "--parallel-max", "20",
                               "--fail", "--max-time", str(SECONDS_MAX), "--write-out", "%{http_version}\n", "--output", os.devnull,
                               f"https://localhost:{port}/plaintext?[1-200]"], capture_output=True, text=True, check=False)
        if said.returncode != 0 or said.stdout != "2\n" * 200:
            raise RuntimeError(f"{said.returncode} {said.stderr} {said.stdout.replace(chr(10), '')}")

    return ask


def restart(manager, server, clients, number):
    """Restarts the process `number`, and returns the number of the new one."""
    clients.wait(20)
    os.kill(number, signal.SIGUSR2)
    manager.wait_for("RELOADING=1")
    said = manager.wait_for("MAINPID=")
    clients.wait(20)
    line = server.stdout.readline()
    if not line.startswith("listening on "):
        fail(f"the new one said {line}")
    return int(said.rsplit("=", 1)[1])


def end(manager, server, number):
    """The first process has ended by itself; the last one ends by SIGTERM, and has the same standard error."""
    check("the end of the first one", server.wait(timeout=SECONDS_MAX), 0)
    os.kill(number, signal.SIGTERM)
    manager.wait_for("STOPPING=1")
    check("what they said", server.stderr.read(), "")
    server.stdout.close()


def check_plain():
    manager = Manager()
    server, port = start(manager)
    clients = Clients(*[kept(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)) for _ in range(6)])
    number = server.pid
    for _ in range(RESTARTS):
        number = restart(manager, server, clients, number)
    clients.end()
    end(manager, server, number)
    manager.socket.close()


def check_tls():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", FOLDER / "key.pem", "-out", FOLDER / "certificate.pem"],
                   capture_output=True, check=True)
    manager = Manager()
    server, port = start(manager, "--certificate", FOLDER / "certificate.pem", "--key", FOLDER / "key.pem")
    trust = untrusting()
    clients = Clients(*[kept(lambda: http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS_MAX, context=trust))
                        for _ in range(3)], *clients_by_curl(port))
    number = server.pid
    for _ in range(RESTARTS):
        number = restart(manager, server, clients, number)
    clients.end()
    end(manager, server, number)
    manager.socket.close()


def check_failure():
    """A new process that cannot serve changes nothing: the old one says why, and serves on."""
    manager = Manager()
    copy = FOLDER / "httpd_copy"
    shutil.copy(HTTPD, copy)
    server = subprocess.Popen([copy, FOLDER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "NOTIFY_SOCKET": manager.name})
    port = int(server.stdout.readline().rsplit(":", 1)[1])
    manager.wait_for("READY=1")
    copy.unlink()
    copy.write_text("#!/bin/sh\nexit 3\n")
    copy.chmod(0o755)
    server.send_signal(signal.SIGUSR2)
    manager.wait_for("RELOADING=1")
    manager.wait_for("READY=1")
    said = server.stderr.readline()
    if "exited with 3" not in said:
        fail(f"of a new program that fails: {said}")
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    client.request("GET", "/plaintext")
    check("the old one", client.getresponse().read(), b"Hello, World!")
    client.close()
    server.send_signal(signal.SIGTERM)
    check("its end", server.wait(timeout=SECONDS_MAX), 0)
    manager.socket.close()


def check_activation():
    """The socket is passed as systemd does it."""
    manager = Manager()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    start_it = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True);"
                "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES='web');"
                "os.execv(sys.argv[2], sys.argv[2:])")
    server = subprocess.Popen([sys.executable, "-c", start_it, str(listener.fileno()), HTTPD, FOLDER], pass_fds=[listener.fileno()],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "NOTIFY_SOCKET": manager.name})
    check("where it listens", server.stdout.readline(), f"listening on 127.0.0.1:{port}\n")
    manager.wait_for("READY=1")
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    client.request("GET", "/plaintext")
    check("by the socket of another", client.getresponse().read(), b"Hello, World!")
    client.close()
    server.send_signal(signal.SIGTERM)
    check("its end", server.wait(timeout=SECONDS_MAX), 0)
    listener.close()
    manager.socket.close()


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for backend in "epoll", "io_uring":
        os.environ["TROUPE_IO"] = backend
        check_plain()
        check_tls()
    check_failure()
    check_activation()
    print("httpd: restarts lose no request")


main()
