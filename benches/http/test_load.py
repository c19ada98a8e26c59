"""The load generator against servers that lie: builds it, and nothing else. Run: python3 -m unittest, with this file."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

RIGHT = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 13\r\n\r\nHello, World!"

# A server of one file: answers each request with argument 1, up to the number in argument 2, then with argument 3; in single bytes if there
# is a fourth.
SERVER = r"""
import ast, socket, sys, threading
first, until, then = ast.literal_eval(sys.argv[1]), int(sys.argv[2]), ast.literal_eval(sys.argv[3])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def talk(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    came, answered = b"", 0
    while more := peer.recv(65536):
        came += more
        while b"\r\n\r\n" in came:
            came = came.split(b"\r\n\r\n", 1)[1]
            answered += 1
            text = first if answered <= until else then
            for part in ([text[i:i + 1] for i in range(len(text))] if sys.argv[4] == "bytes" else [text]):
                peer.send(part)
            if not text:
                return peer.close()
while True:
    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
"""


class LoadGenerator(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.load = str(Path(cls.folder.name, "load"))
        Path(cls.folder.name, "server.py").write_text(SERVER)
        subprocess.run(["g++", "-std=c++23", "-Wall", "-Wextra", "-Werror", str(HERE / "load.cpp"), "-o", cls.load], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ask(self, first: bytes, until: int = 1_000_000, then: bytes = b"", bench: str = "http_plaintext", size: int = 200,
            how: str = "whole") -> subprocess.CompletedProcess:
        server = [sys.executable, str(Path(self.folder.name, "server.py")), repr(first), str(until), repr(then), how]
        return subprocess.run([self.load, *server, bench, "1", str(size)], text=True, capture_output=True, timeout=60)

    def refused(self, *arguments, **more) -> str:
        done = self.ask(*arguments, **more)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def test_right_answers_are_counted(self):
        for bench, size in (("http_plaintext", 200), ("http_pipelined", 207), ("http_idle", 3)):
            for how in ("whole", "bytes"):
                with self.subTest(bench=bench, how=how):
                    done = self.ask(RIGHT, bench=bench, size=size, how=how)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn(f" check={size} ", done.stdout)

    def test_wrong_answers_are_refused(self):
        for answer, why in ((RIGHT[:-1] + b"?", "another body"), (RIGHT.replace(b"13", b"12"), "another length"),
                            (RIGHT.replace(b"200", b"404"), "not answered 200"), (RIGHT.replace(b"LEN", b"BEN"), "without Content-Length"),
                            (RIGHT + RIGHT, "more answers than requests"), (b"", "closed by the server")):
            with self.subTest(why):
                self.assertIn(why, self.refused(answer))

    def test_one_wrong_answer_among_many_is_found(self):
        self.assertIn("another body", self.refused(RIGHT, 5, RIGHT[:-1] + b"?"))
        self.assertIn("another length", self.refused(RIGHT, 5, RIGHT.replace(b"13", b"14") + b"?"))

    def test_server_that_cannot_be_started_is_named(self):
        done = subprocess.run([self.load, "/no/such/server", "http_plaintext", "1", "1"], text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/server", done.stderr)


if __name__ == "__main__":
    unittest.main()
