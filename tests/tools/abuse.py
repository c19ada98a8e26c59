"""Questions that make no sense, readers that take nothing, and readers that go: the program answers others, and does its work."""

import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

TOOL, PROGRAM = sys.argv[1:3]
SECONDS_MAX = 60
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_abuse"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER)}
SEED = int(os.environ.get("TROUPE_SEED", "1"))
WORDS = [b"summary", b"dump", b"actors", b"longest", b"actor", b"waits", b"threads", b"trace", b"stacks", b"running", b"warnings", b"0", b"1", b"-1", b"1000", b"1001",
         b"18446744073709551616", b"\xff\xfe", b"\0", b"  ", b"Quick", b"x" * 300, b"'", b'"\\', b"\r", b"1e9", b"0x1"]


def check(what, holds, seen):
    if not holds:
        raise AssertionError(f"{what} (TROUPE_SEED={SEED}):\n{seen}")


def connect(pid):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(FOLDER / "troupe" / f"{pid}.sock"))  # waits where a limit of time would refuse to
    stream.settimeout(SECONDS_MAX)
    return stream


def summary(pid):
    with connect(pid) as stream:
        stream.sendall(b"summary\n")
        return json.loads(stream.makefile().readline())["runtimes"][0]


def check_works(pid, what):
    """Its handlers go on."""
    first, deadline = summary(pid)["total"]["messages"], time.monotonic() + SECONDS_MAX
    while summary(pid)["total"]["messages"] < first + 50:
        check(f"the program works on, {what}", time.monotonic() < deadline, first)


def nonsense(chance):
    line = b" ".join(chance.choice(WORDS) for _ in range(chance.randrange(0, 6)))
    if chance.random() < 0.2:
        line = bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    return line.replace(b"\n", b"")


def check_nonsense(pid):
    """Each line has an answer, which is JSON; but for a trace, which takes its time."""
    chance = random.Random(SEED)
    with connect(pid) as stream:
        answers = stream.makefile("rb")
        for _ in range(2000):
            line = nonsense(chance)
            if line.startswith(b"trace"):
                continue
            stream.sendall(line + b"\n")
            check(f"an answer to {line}", isinstance(json.loads(answers.readline().decode(errors="replace")), dict), line)
    check_works(pid, "after nonsense")


def check_goers(pid):
    """They go in the middle of a question or an answer, some with a reset."""
    chance = random.Random(SEED)
    for i in range(200):
        stream = connect(pid)
        said = chance.choice([b"", b"summ", b"trace 600000\n", b"summary\n", b"summary\n" * 50, b"actors 0 0 1000\n" * 20, b"\n" * 100])
        stream.sendall(said)
        if i % 3 == 0 and said.endswith(b"\n") and not said.startswith(b"trace"):
            stream.recv(1)
        stream.close()
    check_works(pid, "after readers that went")
    with connect(pid) as stream:  # no question has an end of its own
        try:
            for _ in range(100):
                stream.sendall(b"x" * 1000)
            ended = stream.recv(1) == b""
        except OSError:
            ended = True
    check("a question without an end is cut off", ended, pid)


def check_silent(pid):
    """They ask for much and take nothing; as many as the socket has places but one."""
    silent = [connect(pid) for _ in range(15)]
    for one in silent:
        one.sendall(b"actors 0 0 1000\n" * 200)
    check_works(pid, "while readers take nothing")
    for one in silent:
        one.close()
    check_works(pid, "after them")


def check_idle(pid):
    """They take more places than there are, and ask nothing, or never end their question."""
    idle = [connect(pid) for _ in range(24)]
    for i, one in enumerate(idle):
        one.sendall([b"", b"summ", b"summary\n"][i % 3])
    check_works(pid, "while idle connections take all places")
    page = subprocess.Popen([TOOL, "page", str(pid), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        url = page.stdout.readline().strip()
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:  # until the page's connection is among those that go
            idle.append(connect(pid))
            time.sleep(0.05)  # sleeps: others come meanwhile
        with urllib.request.urlopen(url + "metrics", timeout=SECONDS_MAX) as answer:
            check("the page asks again", "troupe_up_seconds" in answer.read().decode(), url)
    finally:
        page.terminate()
    page.wait(timeout=SECONDS_MAX)
    for one in idle:
        one.close()


def check_page(pid):
    page = subprocess.Popen([TOOL, "page", str(pid), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        port = urllib.parse.urlsplit(page.stdout.readline().strip()).port
        chance = random.Random(SEED)

        def request(path):
            return b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

        def open_page():
            stream = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
            return stream

        silent = [open_page() for _ in range(30)]
        for i, one in enumerate(silent):
            one.sendall(request(b"/events") if i % 2 else request(b"/") * 20)
        for _ in range(200):
            path = chance.choice([b"/actor", b"/actors", b"/longest", b"/events", b"/trace", b"/dump", b"/metrics"])
            query = urllib.parse.quote_from_bytes(nonsense(chance)).encode()
            with open_page() as stream:
                stream.sendall(request(path + b"?" + chance.choice([b"id=", b"class=", b"runtime=", b"from=", b"seconds=x", b""]) + query))
                if chance.random() < 0.9:
                    line = stream.makefile("rb").readline()
                    check(f"an answer to {path}?{query}", line.startswith(b"HTTP/1.1 ") and line[9:10] in b"245", line)
                    check("no fault of the server", not line.startswith(b"HTTP/1.1 500"), (path, query))
        check_works(pid, "while readers of the page take nothing")
        for one in silent:
            one.close()
        with open_page() as stream:
            stream.sendall(request(b"/metrics"))
            answer = stream.recv(1000)
            check("the page is served after them", answer.startswith(b"HTTP/1.1 200"), answer)
    finally:
        page.terminate()
    check("the page's server ends", page.wait(timeout=SECONDS_MAX) == 0, page)


def main():
    program = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**ENVIRONMENT, "TROUPE_OBSERVE": "1"})
    try:
        check("the program begins", program.stdout.readline() == "ready\n", program)
        check_nonsense(program.pid)
        check_goers(program.pid)
        check_silent(program.pid)
        check_idle(program.pid)
        check_page(program.pid)
        program.stdin.close()
        check("the program ends", program.wait(timeout=SECONDS_MAX) == 0, program)
    except AssertionError as wrong:
        print(f"abuse: {wrong}")
        sys.exit(1)
    finally:
        program.kill()
        program.wait(timeout=SECONDS_MAX)
        shutil.rmtree(FOLDER, ignore_errors=True)
    print("abuse: nothing came of it")


main()
