"""proxy in front of servers of ours that fail, are slow and come back: no request is lost that may be repeated, bodies
and WebSockets pass, and a client keeps its server."""

import http.client
import http.server
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time

PROXY = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "proxy"
SECONDS_MAX = 60
LARGE = bytes(16_000_000)


def fail(text):
    print(f"proxy: {text}")
    sys.exit(1)


def check(what, got, wanted):
    if got != wanted:
        fail(f"{what}: {got!r}, not {wanted!r}")


def wait_until(what, holds):
    until = time.monotonic() + SECONDS_MAX
    while not holds():
        if time.monotonic() > until:
            fail(f"never: {what}")
        time.sleep(0.01)  # sleeps: what it waits for comes from another process


# Of an answer, and passed on as they are.
KEPT = [b"Server: another", b"Allow: GET, X", b"Cache-Control: max-age=7, private", b"ETag: W/\"a\"", b"Vary: Origin", b"Age: 3",
        b"WWW-Authenticate: Basic realm=\"a\", Bearer"]
TOGETHER = threading.Barrier(10)  # all of these requests are under way at once


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        with self.server.lock:
            self.server.requests += 1
        body = behind = b""
        if length := self.headers.get("Content-Length"):
            body = self.rfile.read(int(length))
        elif self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            behind = b"".join(iter(self.rfile.readline, b"\r\n"))
        if self.path.startswith("/cut"):  # the connection ends in place of an answer
            self.close_connection = True
            return
        if self.path.startswith("/slow"):
            TOGETHER.wait(SECONDS_MAX)
        if self.path.startswith("/busy") and self.server.busy:
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path.startswith("/trailer"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n4\r\nbody\r\n"
                             b"0\r\nSum: 7\r\nSet-Cookie: a=1\r\nForwarded: for=192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
            return
        if self.path.startswith("/torn"):  # the connection ends within the answer
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
            return
        if self.path.startswith("/chunks"):  # the same, for an answer without a length
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
            self.close_connection = True
            return
        if self.path.startswith("/reset"):  # the end of the connection would be the end of the answer
            self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nhalf")
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())  # without a shutdown before
            self.close_connection = True
            return
        if self.path.startswith("/kept"):
            self.wfile.write(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: X-One\r\nX-One: 1\r\nX-Two: 2\r\nConnection: X-Two\r\n"
                             + b"".join(line + b"\r\n" for line in KEPT) + b"\r\n")
            return
        if self.path.startswith("/odd"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi")
            self.close_connection = True
            return
        if self.path.startswith("/part"):
            wanted = self.headers["Range"] == "bytes=1-2"
            self.wfile.write(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-2/3\r\nContent-Length: 2\r\n\r\nne" if wanted
                             else b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n")
            return
        text = body if self.path.startswith("/echo") else self.server.name
        if self.path.startswith("/large"):
            text = LARGE
        if self.path.startswith("/target"):
            text = self.path.encode("latin-1")
        if self.path.startswith("/behind"):
            text = body + b"\n" + behind.lower()
        if self.path.startswith("/fields"):
            text = "".join(f"{name}: {value}\n" for name, value in self.headers.items()).encode()
        self.send_response(404 if self.path.startswith("/missing") else 200)
        self.send_header("X-Server", self.server.name.decode())
        self.send_header("Set-Cookie", "a=1")
        self.send_header("Set-Cookie", "b=2")
        self.send_header("Connection", "X-Private")
        self.send_header("X-Private", "of this connection")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, name, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.name, self.requests, self.lock, self.busy = name.encode(), 0, threading.Lock(), False
        self.open = set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def process_request(self, request, client_address):
        self.open.add(request)
        super().process_request(request, client_address)

    def handle_error(self, *_):
        pass  # a connection that this test has cut

    def origin(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def die(self):
        """As when the process is killed: also the open connections end."""
        self.shutdown()
        self.server_close()
        for one in list(self.open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Proxy:
    def __init__(self, *arguments, environment=None):
        self.process = subprocess.Popen([PROXY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, **(environment or {})})
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            fail(f"it said {line} {self.process.stderr.read()}")
        self.port = int(line.rsplit(":", 1)[1])
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True).start()

    def ask(self, method="GET", path="/", body=None, fields=None, chunked=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        connection.request(method, path, body, fields or {}, encode_chunked=chunked)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, text

    def wait_for(self, words, since=0):
        """`since`: how many lines it had said before."""
        wait_until(f"it says '{words}'", lambda: any(words in line for line in self.said[since:]))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        check("the end", self.process.wait(SECONDS_MAX), 0)
        if errors := self.process.stderr.read():
            fail(errors)


def check_passing(environment):
    one = Server("one")
    proxy = Proxy("--balance", "hash", one.origin(), environment=environment)
    answer, text = proxy.ask(path="/a%20b?x=1")
    check("an answer", (answer.status, text), (200, b"one"))
    check("its fields", (answer.headers.get_all("Set-Cookie"), answer.headers["X-Private"], answer.headers["Via"]),
          (["a=1", "b=2"], None, "1.1 troupe"))
    answer, text = proxy.ask(path="/missing")
    check("an error", (answer.status, text), (404, b"one"))
    answer, text = proxy.ask("HEAD")
    check("HEAD", (answer.status, text), (200, b""))
    _, text = proxy.ask(path="/fields", fields={"X-Forwarded-For": "192.0.2.7", "Connection": "X-Own", "X-Own": "1", "X-Other": "2",
                                                "Host": "shop.example"})
    lines = dict(line.split(": ", 1) for line in text.decode().splitlines())
    check("fields of a request", [lines.get(name) for name in ("X-Forwarded-For", "X-Forwarded-Host", "X-Own", "X-Other")],
          ["192.0.2.7, 127.0.0.1", "shop.example", None, "2"])
    for size in 0, 10, 64 * 1024, 64 * 1024 + 1, 3_000_000:
        body = random.Random(size).randbytes(size)
        _, text = proxy.ask("POST", "/echo", body)
        check(f"a body of {size} bytes", text == body, True)
        _, text = proxy.ask("PUT", "/echo", iter([body[:7], body[7:]] if size > 7 else [body] if body else []), chunked=True,
                            fields={"Transfer-Encoding": "chunked"})
        check(f"a body of {size} bytes in chunks", text == body, True)
    client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
    client.sendall(b"GET /trailer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    text = b"".join(iter(lambda: client.recv(4096), b""))
    client.close()
    check("a trailer", text.split(b"\r\n\r\n", 1)[1], b"4\r\nbody\r\n0\r\nSum: 7\r\n\r\n")
    for path in '/target/a|b"<>^{}\\`?c=|"<>^{}\\`', "/target/%7c%22%3C?%5e", "/target/a/./b/../c", "/target?", "/target//a":
        client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        text = b"".join(iter(lambda: client.recv(4096), b""))
        client.close()
        check("a target", text.split(b"\r\n\r\n", 1)[1], path.encode())
    client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
    client.sendall(b"POST /behind HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close, X-Own\r\n\r\n"
                   b"4\r\nbody\r\n0\r\nSum: 7\r\nForwarded: for=192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\nX-Own: 1\r\n"
                   b"X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n\r\n")
    text = b"".join(iter(lambda: client.recv(4096), b""))
    client.close()
    check("a trailer of a request", text.split(b"\r\n\r\n", 1)[1], b"body\nsum: 7\r\n")
    for method in "GET", "HEAD":
        for protocol in "1.0", "1.1":
            client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
            client.sendall(f"{method} / HTTP/{protocol}\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            head = b"".join(iter(lambda: client.recv(4096), b"")).split(b"\r\n\r\n")[0]
            client.close()
            check(f"the length of an answer, {method} {protocol}", (b"Content-Length: 3" in head, b"chunked" in head),
                  (True, False))
    answer, text = proxy.ask(path="/part", fields={"Range": "bytes=1-2"})
    check("a part", (answer.status, answer.headers["Content-Range"], text), (206, "bytes 1-2/3", b"ne"))
    answer, _ = proxy.ask("POST", "/cut", b"x")
    check("no answer to a POST", answer.status, 502)
    # Half of an answer is seen to be half, and is no failure of the proxy: see end().
    client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
    client.sendall(b"GET /torn HTTP/1.1\r\nHost: a\r\n\r\n")
    text = b"".join(iter(lambda: client.recv(4096), b""))
    client.close()
    check("half of an answer", (b"half" in text, text.endswith(b"0\r\n\r\n")), (True, False))
    # To a client of HTTP/1.0 the end of the connection is the end of the answer.
    for path in "/chunks", "/reset":
        client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        try:
            text = b"".join(iter(lambda: client.recv(4096), b""))
        except ConnectionResetError:
            text = None
        client.close()
        check(f"the end of half an answer, {path}", text, None)
    proxy.end()
    one.die()


def check_standards():
    """What RFC 9110 and 9112 demand of an intermediary, beside that which the other checks show."""
    one = Server("one")
    proxy = Proxy("--health-ms", 60_000, one.origin())
    wait_until("the first check of its health", lambda: one.requests)

    def ask(head, *later):
        client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        client.sendall(head)
        text = b""
        for awaited, more in later:
            while awaited not in text:
                text += client.recv(4096) or fail(f"an end behind {text}")
            client.sendall(more)
        text += b"".join(iter(lambda: client.recv(4096), b""))
        client.close()
        return text

    last = b"Host: a\r\nConnection: close\r\n"
    lines = ask(b"GET /kept HTTP/1.1\r\n" + last + b"\r\n").split(b"\r\n")
    check("fields of an answer that are passed on", [line for line in KEPT if line not in lines], [])
    check("fields that are there once", [sum(line.startswith(name) for line in lines) for name in (b"Server:", b"Date:")], [1, 1])
    check("fields of two Connection", [line for line in lines if line.startswith((b"X-One", b"X-Two"))], [])
    kept = [b"Authorization: Basic YTpi", b"Cache-Control: no-cache", b"If-Match: \"x\"", b"If-None-Match: W/\"y\"", b"Max-Forwards: 0",
            b"If-Modified-Since: some day"]
    lines = ask(b"GET /fields HTTP/1.1\r\n" + last + b"Connection: X-One\r\nX-One: 1\r\nX-Two: 2\r\nConnection: X-Two\r\n"
                + b"".join(line + b"\r\n" for line in kept) + b"\r\n").split(b"\n")
    check("fields of a request that are passed on", [line for line in kept if line not in lines], [])
    check("fields of two Connection of a request", [line for line in lines if line.startswith((b"X-One", b"X-Two"))], [])
    text = ask(b"GET http://b.example:81/fields HTTP/1.1\r\n" + last + b"\r\n")
    check("the host of an absolute form", b"\nX-Forwarded-Host: b.example:81\n" in text, True)
    for version in b"1.0", b"1.1":
        text = ask(b"GET /fields HTTP/" + version + b"\r\nVia: 1.1 other\r\n" + last + b"\r\n")
        lines = text.split(b"\r\n\r\n", 1)[1].split(b"\n")
        check("Via", [line for line in lines if line.startswith(b"Via: ")], [b"Via: 1.1 other", b"Via: " + version + b" troupe"])
    text = ask(b"POST /echo HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n" + last + b"\r\n",
               (b"HTTP/1.1 100 Continue\r\n\r\n", b"body"))
    check("100-continue", text.endswith(b"\r\n\r\nbody"), True)
    check("a malformed length of an answer", ask(b"GET /odd HTTP/1.1\r\n" + last + b"\r\n")[:12], b"HTTP/1.1 502")
    before = one.requests
    check("an OPTIONS that goes no further", ask(b"OPTIONS / HTTP/1.1\r\nMax-Forwards: 0\r\n" + last + b"\r\n")[:12], b"HTTP/1.1 204")
    check("requests that came to the server", one.requests, before)
    text = ask(b"OPTIONS /fields HTTP/1.1\r\nMax-Forwards: 3\r\n" + last + b"\r\n")
    check("an OPTIONS that goes on", b"\nMax-Forwards: 2\n" in text, True)
    proxy.end()
    two = Server("two")
    proxy = Proxy("--health-ms", 60_000, one.origin(), two.origin())
    wait_until("the first check of both", lambda: two.requests)
    for method, body in ("GET", None), ("POST", b"x"):
        before = one.requests + two.requests
        check("an end in place of an answer", proxy.ask(method, "/cut", body)[0].status, 502)
        check(f"a {method} is sent once", one.requests + two.requests == before + 1, method == "POST")
    proxy.end()
    for each in one, two:
        each.die()


def check_failing():
    servers = [Server(name) for name in ("one", "two", "three")]
    proxy = Proxy("--health-ms", 50, "--failures", 2, *(one.origin() for one in servers))
    names = {proxy.ask()[1] for _ in range(9)}
    check("who answers", names, {b"one", b"two", b"three"})

    answers, lost, ends = [], [], threading.Event()

    def keep_asking():
        while not ends.is_set():
            answer, text = proxy.ask()
            (answers if answer.status == 200 else lost).append((answer.status, text))

    threads = [threading.Thread(target=keep_asking) for _ in range(4)]
    for one in threads:
        one.start()
    wait_until("200 answers", lambda: len(answers) >= 200)
    port = servers[0].server_address[1]
    servers[0].die()
    proxy.wait_for(f"{servers[0].origin()} fails")
    servers[0] = Server("new", port)
    proxy.wait_for(f"{servers[0].origin()} works again")
    wait_until("the new server answers", lambda: servers[0].requests > 20)
    ends.set()
    for one in threads:
        one.join()
    check("lost requests", lost, [])
    check("the new server answers", any(text == b"new" for _, text in answers), True)

    # An answer 503 is asked for again elsewhere.
    for one in servers[:2]:
        one.busy = True
    check("busy servers", {proxy.ask(path="/busy")[1] for _ in range(3)} <= {b"three", b""}, True)

    before = len(proxy.said)
    for one in servers:
        one.die()
    for one in servers:
        proxy.wait_for(f"{one.origin()} fails", before)
    answer, _ = proxy.ask()
    check("nobody works", (answer.status, answer.headers["Retry-After"]), (503, "1"))
    proxy.end()


def check_balance():
    servers = [Server(name) for name in ("one", "two")]
    proxy = Proxy("--health-ms", 60_000, *(one.origin() for one in servers))
    wait_until("the first checks of their health", lambda: all(one.requests for one in servers))
    threads = [threading.Thread(target=proxy.ask, args=("GET", "/slow")) for _ in range(10)]
    before = [one.requests for one in servers]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    check("ten requests at once", [one.requests - count for one, count in zip(servers, before)], [5, 5])
    proxy.end()
    proxy = Proxy("--balance", "hash", *(one.origin() for one in servers))
    check("one client", len({proxy.ask()[1] for _ in range(10)}), 1)
    proxy.end()
    for one in servers:
        one.die()


HOSTILE = [
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\n\tGET /own HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n X-Folded: 1\r\n\r\n",
    b"GET http://[1/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
]


def check_hostile():
    """What two servers may read differently comes to none of them."""
    one = Server("one")
    proxy = Proxy("--health-ms", 60_000, one.origin())
    wait_until("the first check of its health", lambda: one.requests)
    for head in HOSTILE:
        client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        client.sendall(head)
        answer = b""
        while piece := client.recv(4096):
            answer += piece
        if not answer.startswith(b"HTTP/1.1 400 ") or answer.count(b"HTTP/1.1") != 1:
            fail(f"{head}: {answer}")
        client.close()
    check("requests that came to the server", one.requests, 1)
    proxy.end()
    one.die()


def check_blame():
    """What a client does wrong takes no server out of service for the others."""
    one = Server("one")
    proxy = Proxy("--health-ms", 60_000, "--answer-ms", 500, one.origin())
    wait_until("the first check of its health", lambda: one.requests)

    def say(head, pieces=()):
        client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        client.sendall(head)
        for piece in pieces:
            time.sleep(0.2)  # sleeps: a slow client, whose body takes longer than --answer-ms
            client.sendall(piece)
        client.settimeout(1)
        try:
            return client.recv(100)
        except TimeoutError:
            return b""
        finally:
            client.close()

    def reset():
        client = socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        client.sendall(b"POST /one HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 100_000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    begin = b"GET /one HTTP/1.1\r\nHost: h\r\n"
    opens = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    for _ in range(4):
        check("a WebSocket where there is none", say(begin + opens + b"\r\n")[:12], b"HTTP/1.1 400")
        check("a bad subprotocol", say(begin + opens + b"Sec-WebSocket-Protocol: a b;\r\n\r\n")[:12], b"HTTP/1.1 400")
        reset()
        say(b"GET /" + b"a" * 8180 + b" HTTP/1.1\r\nHost: h\r\n\r\n")
        say(begin + b"Content-Type: \xff\r\n\r\n")
        say(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", [b"200\r\n" + b"x" * 512 + b"\r\n"] * 4)
    answer = say(begin + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
    check("an offer of h2c is ignored", answer[:12], b"HTTP/1.1 200")
    answer, text = proxy.ask(path="/one")
    check("another client", (answer.status, text), (200, b"one"))
    _, text = proxy.ask(path="/fields", fields={"Forwarded": "for=1.2.3.4", "X-Real-IP": "1.2.3.4"})
    lines = dict(line.split(": ", 1) for line in text.decode().splitlines())
    check("what a client says of its origin", [lines.get(name) for name in ("Forwarded", "X-Real-IP")], [None, None])
    proxy.end()
    one.die()


def check_unread():
    """Clients that read no answers take the server from nobody else."""
    one = Server("one")
    proxy = Proxy("--health-ms", 50, "--failures", 3, one.origin())
    clients = [socket.socket() for _ in range(300)]
    for number, client in enumerate(clients):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", proxy.port))
        client.sendall(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        if number < 256:  # the server of this test accepts no 300 at once; the others would wait in line
            check("an answer has begun", select.select([client], [], [], SECONDS_MAX)[0], [client])
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=5, source_address=("127.0.0.2", 0))
    connection.request("GET", "/")
    check("another client", connection.getresponse().read(), b"one")
    connection.close()
    before = one.requests
    wait_until("it is looked at", lambda: one.requests > before + 3)
    check("what it says", proxy.said, [])
    for client in clients:
        client.close()
    proxy.end()
    one.die()


class Echo(socketserver.BaseRequestHandler):
    """A WebSocket that answers each of a few short text messages in upper case."""

    def handle(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (piece := self.request.recv(4096)):
                return
            head += piece
        lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:] if line)}
        if "sec-websocket-key" not in fields:
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return
        self.request.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             b"Sec-WebSocket-Accept: " + accept_of(fields["sec-websocket-key"]) + b"\r\n"
                             b"Sec-WebSocket-Protocol: chat.v2\r\n\r\n")
        stream = self.request.makefile("rb")
        while True:
            code, text = read_frame(stream)
            if code == 8:
                self.request.sendall(bytes([0x88, len(text)]) + text)
                return
            self.request.sendall(bytes([0x81, len(text)]) + text.upper())


def accept_of(key):
    import base64
    import hashlib
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())


def read_frame(stream):
    first, second = stream.read(2)
    mask = stream.read(4) if second & 0x80 else bytes(4)
    text = stream.read(second & 0x7f)
    return first & 15, bytes(byte ^ mask[i % 4] for i, byte in enumerate(text))


def check_websocket():
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    behind = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
    behind.daemon_threads = True
    threading.Thread(target=behind.serve_forever, args=(0.01,), daemon=True).start()
    second = Proxy(f"http://127.0.0.1:{behind.server_address[1]}")
    first = Proxy("--http2", "known", f"http://127.0.0.1:{second.port}")  # asks the second one by HTTP/2
    for port in second.port, first.port:
        talk_through(port)
    first.end()
    second.end()
    behind.shutdown()


def talk_through(port):
    client = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
    client.sendall(b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   b"Sec-WebSocket-Protocol: chat.v1, chat.v2\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    stream = client.makefile("rb")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += stream.readline() or fail(f"no WebSocket: {head}")
    check("the handshake", (head.split(b"\r\n")[0][:12], b"Sec-WebSocket-Protocol: chat.v2" in head), (b"HTTP/1.1 101", True))
    for word in b"one", b"two":
        client.sendall(bytes([0x81, 0x80 | len(word)]) + bytes(4) + word)
        check("a message", read_frame(stream), (1, word.upper()))
    client.sendall(bytes([0x88, 0x82]) + bytes(4) + (1000).to_bytes(2, "big"))
    check("the close", read_frame(stream), (8, (1000).to_bytes(2, "big")))
    client.close()


def by_curl(port, path, body=None):
    """By HTTP/2. Returns the protocol, the status and the text of the answer."""
    done = subprocess.run(["curl", "--silent", "--show-error", "--http2-prior-knowledge", "--max-time", str(SECONDS_MAX),
                           "--write-out", "%{stderr}%{http_version} %{http_code}",
                           *([] if body is None else ["--data-binary", "@-"]), f"http://127.0.0.1:{port}{path}"],
                          input=body, capture_output=True, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        fail(f"curl {path}: {done}")
    return done.stderr.decode(), done.stdout


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def check_trailers():
    """Fields behind the body of a request: by HTTP/1.1 to a proxy that asks a second one by HTTP/2, which asks by HTTP/1.1."""
    one = Server("one")
    second = Proxy(one.origin())
    first = Proxy("--http2", "known", f"http://127.0.0.1:{second.port}")
    for port in second.port, first.port:
        client = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
        client.sendall(b"POST /behind HTTP/1.1\r\nHost: a\r\nConnection: close, X-Own\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"4\r\nbody\r\n0\r\nSum: 7\r\nSet-Cookie: a=1\r\nX-Own: 2\r\nSign: abc\r\n\r\n")
        text = b"".join(iter(lambda: client.recv(4096), b""))
        client.close()
        check(f"a body and what is behind it {text!r}", text.find(b"body\nsum: 7\r\nsign: abc\r\n") > 0, True)
        text = text.split(b"\r\n\r\n", 1)[1]
        check("fields that stay here", [text.count(b"set-cookie"), text.count(b"x-own")], [0, 0])
    # A body whose length is known, by HTTP/2: the proxy keeps it for a second attempt, with what is behind it.
    client = socket.create_connection(("127.0.0.1", second.port), SECONDS_MAX)
    asked = {":method": "PUT", ":scheme": "http", ":authority": "a", ":path": "/behind", "content-length": "4"}
    client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, fields_of(asked)) + frame(0, 0, 1, b"body") +
                   frame(1, 5, 1, fields_of({"sum": "7", "set-cookie": "a=1"})))
    text = b""
    while b"body\n" not in text and (some := client.recv(4096)):
        text += some
    client.close()
    check(f"what is behind a short body {text!r}", text.find(b"body\nsum: 7\r\n") > 0, True)
    first.end()
    second.end()
    one.die()


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def fields_of(fields):
    """In HPACK, without its tables."""
    return b"".join(b"\0" + b"".join(bytes([len(part)]) + part.encode() for part in pair) for pair in fields.items())


def check_http2():
    """HTTP/2 before a server of HTTP/1.1, and both before one that speaks nothing but HTTP/2."""
    if not shutil.which("curl"):
        print("proxy: partly skipped: needs curl")
        return
    one = Server("one")
    proxy = Proxy(one.origin())
    check("HTTP/2 in front", by_curl(proxy.port, "/a"), ("2 200", b"one"))
    check("a missing page", by_curl(proxy.port, "/missing"), ("2 404", b"one"))
    for size in 5, 300_000:
        sent = random.Random(size).randbytes(size)
        check("a body", by_curl(proxy.port, "/echo", sent), ("2 200", sent))
    check("a body with a trailer", by_curl(proxy.port, "/trailer"), ("2 200", b"body"))
    status, fields = by_curl(proxy.port, "/fields")
    check("the fields", (status, (b"\n" + fields).count(b"\nHost: "), b"\n:" in fields, b"connection" in fields.lower()),
          ("2 200", 1, False, False))
    proxy.end()
    one.die()
    if not shutil.which("nghttpd"):
        print("proxy: partly skipped: needs nghttpd")
        return
    folder = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "proxy_http2_check"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_bytes(b"whole")
    port = free_port()
    behind = subprocess.Popen(["nghttpd", "--no-tls", "--address=127.0.0.1", "--echo-upload", f"--htdocs={folder}", str(port)])
    try:
        wait_until("nghttpd listens", lambda: listens(port))
        proxy = Proxy("--http2", "known", f"http://127.0.0.1:{port}")
        check("HTTP/2 on both sides", by_curl(proxy.port, "/"), ("2 200", b"whole"))
        answer, text = proxy.ask()
        check("HTTP/1.1 in front", (answer.status, text), (200, b"whole"))
        sent = random.Random(1).randbytes(1_000_000)
        check("a long body", by_curl(proxy.port, "/up", sent), ("2 200", sent))
        answer, text = proxy.ask("POST", "/up", sent)
        check("the same by HTTP/1.1", (answer.status, text == sent), (200, True))
        got = []
        asking = [threading.Thread(target=lambda: got.append(proxy.ask()[1])) for _ in range(30)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        check("requests side by side", got, [b"whole"] * 30)
        proxy.end()
    finally:
        behind.kill()
        behind.wait()
        shutil.rmtree(folder, ignore_errors=True)


def check_use():
    own = free_port()
    for arguments in ([], ["--port"], ["--port", own, f"http://127.0.0.1:{own}"], ["--port", "x", "http://a"], ["http://a/path"], ["ftp://a"],
                      ["--balance", "odd", "http://a"]):
        done = subprocess.run([PROXY, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        if done.returncode == 0 or "proxy: " not in done.stderr:
            fail(f"{arguments}: {done}")


check_use()
for one_environment in {}, {"TROUPE_WORKERS": "1"}, {"TROUPE_IO": "epoll"}:
    check_passing(one_environment)
check_standards()
check_balance()
check_failing()
check_hostile()
check_blame()
check_unread()
check_websocket()
check_trailers()
check_http2()
print("proxy: all as expected")
