"""httpd serves files, the TechEmpower pages and a chat, by each backend, and finishes what has begun when SIGTERM comes."""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/servers"))
import servers  # noqa: E402

HTTPD = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "httpd"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "httpd_check"
SECONDS_MAX = 60


def fail(text):
    print(f"httpd: {text}")
    sys.exit(1)


def check(what, got, wanted):
    if got != wanted:
        fail(f"{what}: {got!r}, not {wanted!r}")


def start(environment, *arguments):
    server = subprocess.Popen([HTTPD, FOLDER / "www", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **environment})
    line = server.stdout.readline()
    if not line.startswith("listening on "):
        fail(f"it said {line} {server.stderr.read()}")
    return server, int(line.rsplit(":", 1)[1])


def end(server):
    said = server.communicate(timeout=SECONDS_MAX)[1]
    check("its end", (server.returncode, said), (0, ""))


def get(client, target, status=200, **fields):
    client.request("GET", target, headers=fields)
    answer = client.getresponse()
    body = answer.read()
    check(target, answer.status, status)
    return answer, body


def check_pages(port):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    answer, body = get(client, "/plaintext")
    check("/plaintext", (body, answer.headers["Content-Type"], answer.headers["Server"]), (b"Hello, World!", "text/plain", "troupe"))
    if not answer.headers["Date"]:
        fail("there is no Date")
    answer, body = get(client, "/json")
    check("/json", (json.loads(body), answer.headers["Content-Type"]), ({"message": "Hello, World!"}, "application/json"))
    world = json.loads(get(client, "/db")[1])
    check("/db", sorted(world), ["id", "randomNumber"])
    for path in "/queries", "/updates":
        for asked, count in (("", 1), ("?queries=7", 7), ("?queries=0", 1), ("?queries=x", 1), ("?queries=501", 500)):
            found = json.loads(get(client, path + asked)[1])
            check(path + asked, len(found), count)
            if any(not 1 <= one["id"] <= 10_000 or not 1 <= one["randomNumber"] <= 10_000 for one in found):
                fail(f"{path}{asked}: {found}")
    page = get(client, "/fortunes")[1].decode()
    if "<script>" in page or "&lt;script&gt;" not in page or "フレームワークのベンチマーク" not in page or page.count("<tr>") != 8:
        fail(f"/fortunes: {page}")
    check("/", get(client, "/")[1], b"<p>index")
    answer, body = get(client, "/large.bin")
    check("a large file", hashlib.sha256(body).digest(), hashlib.sha256((FOLDER / "www" / "large.bin").read_bytes()).digest())
    get(client, "/large.bin", 304, **{"If-None-Match": answer.headers["ETag"]})
    check("a part", get(client, "/a.txt", 206, Range="bytes=1-3")[1], b"123")
    page = get(client, "/pictures")[1].decode()
    check("/pictures", page.count("<img "), 256)
    pictures = {get(client, target)[1] for target in re.findall(r"src=(/pictures/\d+/\d+)>", page)[::17]}
    check("pictures", ({(one[:2], len(one), int.from_bytes(one[2:6], "little")) for one in pictures}, len(pictures) > 8),
          ({(b"BM", 3126, 3126)}, True))
    for target in "/none", "/pictures/16/0", "/pictures/0/-1", "/pictures/a/0", "/../secret.txt", "/%2e%2e/secret.txt", "/out":
        get(client, target, 404)
    client.close()


def check_pipeline(port):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as client:
        one = b"GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n"
        client.sendall(one * 999 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        got = b""
        while part := client.recv(65536):
            got += part
        check("a pipeline", got.count(b"Hello, World!"), 1000)


class Guest:
    """Who chats."""

    def __init__(self, port, fields="", status=b"101", receive_bytes=0):
        self.socket = socket.socket()
        if receive_bytes > 0:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(SECONDS_MAX)
        self.socket.connect(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /chat HTTP/1.1\r\nHost: a:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{fields}"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.stream.readline()
        if status != b"101":
            check(f"/chat with {fields}", head.split()[1], status)
            return
        wanted = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        if not head.startswith(b"HTTP/1.1 101 ") or wanted not in head:
            fail(f"/chat: {head}")
        self.head = head.decode()

    def send(self, first, data):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        length = bytes([0x80 | len(data)]) if len(data) < 126 else struct.pack(">BH", 0x80 | 126, len(data))
        self.socket.sendall(bytes([first]) + length + mask + masked)

    def hear_inflated(self):
        """The first byte of a text frame, and its text."""
        first, length = self.stream.read(2)
        if length == 126:
            length = struct.unpack(">H", self.stream.read(2))[0]
        data = self.stream.read(length)
        if first & 0x40:
            data = zlib.decompressobj(-15).decompress(data + b"\x00\x00\xff\xff")
        return first, data.decode()

    def say(self, text, code=1):
        self.send(0x80 | code, text if isinstance(text, bytes) else text.encode())

    def hear(self):
        first, length = self.stream.read(2)
        return first & 0x0F, self.stream.read(length)


def check_chat(port):
    one = Guest(port)
    check("one hears", one.hear(), (1, b"guest 1 is here"))
    two = Guest(port)
    check("one hears", one.hear(), (1, b"guest 2 is here"))
    check("two hears", two.hear(), (1, b"guest 2 is here"))
    two.say("hello")
    for guest in one, two:
        check("a guest hears", guest.hear(), (1, b"guest 2: hello"))
    two.say(struct.pack(">H", 1000), code=8)
    check("two hears", two.hear(), (8, struct.pack(">H", 1000)))
    check("one hears", one.hear(), (1, b"guest 2 has gone"))
    # A guest who sends bytes that are no text has to leave; the others stay.
    three = Guest(port, f"Origin: http://A:{port}\r\n")
    for guest in one, three:
        check("a guest hears", guest.hear(), (1, b"guest 3 is here"))
    three.say(b"\xff\xfe\x80", code=2)
    check("three hears", three.hear(), (8, struct.pack(">H", 1003) + b"the chat takes text only"))
    check("one hears", one.hear(), (1, b"guest 3 has gone"))
    for origin in "http://elsewhere.example", "null", f"http://a:{port}.elsewhere.example", "", "http://a":
        Guest(port, f"Origin: {origin}\r\n", b"403")
    return one


def check_compressed_chat(port, other):
    """A guest that compresses, in fragments with a ping between, by zlib itself."""
    guest = Guest(port, "Sec-WebSocket-Protocol: other, chat\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n")
    for line in ("Sec-WebSocket-Protocol: chat\r\n", "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
                 "client_no_context_takeover\r\n"):
        if line not in guest.head:
            fail(f"/chat: {guest.head}")
    check("the guest hears", guest.hear_inflated(), (0x81, "guest 4 is here"))
    check("the other hears", other.hear(), (1, b"guest 4 is here"))
    for text in "short", "long \u00e4 " * 40, "x" * 3_000:
        made = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = (made.compress(text.encode()) + made.flush(zlib.Z_SYNC_FLUSH))[:-4]
        guest.send(0x41, data[:2])
        guest.send(0x89, b"are you there")
        guest.send(0x00, data[2:5])
        guest.send(0x80, data[5:])
        check("its ping is answered", guest.hear(), (10, b"are you there"))
        said = "guest 4: " + text
        check("the guest hears", guest.hear_inflated(), (0xC1 if len(said) >= 64 else 0x81, said))
        check("the other hears", other.hear_inflated(), (0x81, said))
    guest.send(0xC1, b"\xff\xff")
    check("no deflate is refused", guest.hear(), (8, struct.pack(">H", 1007)))
    check("the other hears", other.hear(), (1, b"guest 4 has gone"))


def check_silent_guests(environment):
    """Guests who do not read miss long lines, and the memory that is kept for them is small."""
    server, port = start(environment)
    silent = [Guest(port, receive_bytes=4096) for _ in range(16)]
    hears, talks = Guest(port), Guest(port)
    while hears.hear_inflated()[1] != "guest 18 is here":  # they come in any order
        pass
    before = memory_of(server)
    for i in range(1_500):
        talks.say("x" * 4_000)
        line = ""
        while ": x" not in line:  # what the talker has said before was passed on
            line = hears.hear_inflated()[1]
        if i % 16 == 0:
            talks.socket.recv(1 << 20)
    grown = memory_of(server) - before
    # 16 of them, each with 64 KiB, and what the heap keeps; without that bound it would be 4 MB each.
    if grown > 16 << 20:
        fail(f"for 16 guests who do not read {grown} bytes are kept")
    for guest in (*silent, hears, talks):
        guest.stream.close()
        guest.socket.close()
    server.send_signal(signal.SIGTERM)
    end(server)


def memory_of(server):
    pages = int(pathlib.Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def check_drain(environment):
    """A request that has begun, an idle connection, and one who chats: the first is answered, the others are let go."""
    server, port = start(environment)
    idle = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    get(idle, "/plaintext")
    guest = Guest(port)
    guest.hear()
    slow = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
    slow.sendall(b"GET /updates?queries=500 HTTP/1.1\r\nHost: a\r\n\r\n" * 40)
    slow_head = slow.recv(1)  # the first one has begun
    server.send_signal(signal.SIGTERM)
    answer = slow_head
    while part := slow.recv(65536):
        answer += part
    head, body = answer.rsplit(b"HTTP/1.1 200 OK\r\n", 1)[1].split(b"\r\n\r\n", 1)
    check("the last answer", len(json.loads(body)), 500)
    if b"Connection: close" not in head:
        fail(f"it does not say that it was the last: {head}")
    check("who chats hears", guest.hear(), (8, struct.pack(">H", 1001)))
    check("the idle one", idle.sock.recv(1), b"")
    end(server)


def check_database(database):
    server, port = start({}, "--database", database)
    threads = [threading.Thread(target=check_pages, args=(port,)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    server.send_signal(signal.SIGTERM)
    end(server)


def check_postgres():
    """With a server of its own, where there is PostgreSQL and the component was built."""
    if servers.lacks("httpd", "PostgreSQL", component="postgres"):
        return
    with servers.postgres() as folder:
        check_database("postgresql://tester@/postgres?host=" + folder)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "www").mkdir(parents=True)
    (FOLDER / "secret.txt").write_text("secret")
    (FOLDER / "www" / "index.html").write_text("<p>index")
    (FOLDER / "www" / "a.txt").write_text("0123456789")
    (FOLDER / "www" / "large.bin").write_bytes(os.urandom(3_000_000))
    (FOLDER / "www" / "out").symlink_to("../secret.txt")
    for environment in ({"TROUPE_IO": "epoll"}, {"TROUPE_IO": "io_uring"}, {"TROUPE_IO": "epoll", "TROUPE_WORKERS": "1"}):
        server, port = start(environment)
        check_pages(port)
        check_pipeline(port)
        guest = check_chat(port)
        check_compressed_chat(port, guest)
        threads = [threading.Thread(target=check_pages, args=(port,)) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        server.send_signal(signal.SIGTERM)
        check("who chats hears", guest.hear(), (8, struct.pack(">H", 1001)))
        end(server)
        check_drain(environment)
    check_silent_guests({})
    check_database("sqlite::memory:")
    check_postgres()
    for arguments in ([], ["a", "b"], ["a", "--port"], ["a", "--port", "x"], ["a", "--what", "1"]):
        refused = subprocess.run([HTTPD, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        check(arguments, (refused.returncode, refused.stderr.startswith("usage:")), (2, True))
    refused = subprocess.run([HTTPD, "/no/such/folder"], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    check("no folder", (refused.returncode, "/no/such/folder" in refused.stderr), (1, True))
    print("httpd: all is served")


main()
