"""`troupe stack` and `troupe profile` show the functions that a program's threads are in, and the program does not notice."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

TOOL, PROGRAM = sys.argv[1:3]
SECONDS_MAX = 60
SOURCE = pathlib.Path(__file__).with_name("stacked_program.cpp").read_text().splitlines()
LINE = 1 + next(i for i, line in enumerate(SOURCE) if line.endswith("// the line of the stack"))
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_stack"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER), "TROUPE_OBSERVE": "1"}


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def tool(*arguments, code=0):
    ended = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=ENVIRONMENT)
    check(f"{arguments} ended with {ended.returncode}, not {code}", ended.returncode == code, ended)
    return ended.stdout if code == 0 else ended.stderr


@contextlib.contextmanager
def program(part, **more):
    """The program with that part of its work; `lines` is what it prints after its input has ended."""
    started = subprocess.Popen([PROGRAM, part], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**ENVIRONMENT, **more})
    try:
        check("the program begins", started.stdout.readline() == "ready\n", started)
        yield started
        started.lines = started.communicate(timeout=SECONDS_MAX)[0].splitlines()
        check("the program ends well", started.returncode == 0, started)
    finally:
        started.kill()
        started.wait()


def until(what, holds):
    deadline = time.monotonic() + SECONDS_MAX
    while not holds(seen := what()):
        check("it is seen in time", time.monotonic() < deadline, seen)
        time.sleep(0.02)  # sleeps: the program tells nobody that a handler has begun
    return seen


def check_spinning():
    """Each of twenty looks finds the handler, with its line; none holds the thread for long."""
    with program("spin") as started:
        pid = started.pid
        line = f"  Spinner::spin_on() at stacked_program.cpp:{LINE}"
        until(lambda: tool("stack", pid), lambda seen: line in seen.splitlines())
        for _ in range(20):
            seen = tool("stack", pid)
            check("the handler and its line", line in seen.splitlines(), seen)
            check("what it calls is above it", re.search(r"^  compute\(.*\) at stacked_program.cpp:\d+\n  Spinner::spin_on", seen, re.M), seen)
            check("the thread and the actor", re.match(r"worker \d \(thread \d+\) runs in &Spinner::spin_on of Spinner #\d+\n", seen), seen)
            check("the library is left out", "troupe::" not in seen, seen)
        check("all functions, if they are asked for", "troupe::sched::" in tool("stack", pid, "--all"), tool("stack", pid, "--all"))
        worker = re.match(r"worker (\d)", seen)[1]
        check("of that worker", line in tool("stack", pid, worker), tool("stack", pid, worker))
        check("of another one", tool("stack", pid, 3 - int(worker)) == "no thread runs anything\n", tool("stack", pid, 3 - int(worker)))
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(str(FOLDER / "troupe" / f"{pid}.sock"))
            file, held = stream.makefile("rw"), []
            for _ in range(50):
                file.write("stacks 0\n")
                file.flush()
                threads = json.loads(file.readline())["threads"]
                check("at most 32 KiB of a stack", all(len(one["stack"]) <= 2 * 32 * 1024 for one in threads), threads)
                held += [one["held_ns"] for one in threads]
            # The system may take the processor away meanwhile, from some.
            check("a thread is held for less than 1 ms", len(held) == 50 and sorted(held)[40] < 1e6, sorted(held))
            for bad in "stacks", "stacks x", "stacks 1", "stacks 0 x", "stacks 0 1 1", "stacks 0 999999999":
                file.write(bad + "\n")
                file.flush()
                check(f"{bad} is refused", "error" in json.loads(file.readline()), bad)


def check_blocked():
    """A call of the system that is interrupted continues."""
    with program("read") as started:
        until(lambda: tool("stack", started.pid), lambda seen: " waits in &Reader::read_byte of Reader" in seen)
        for _ in range(20):
            seen = tool("stack", started.pid)
            check("it is in the call", re.search(r"\bread\b.*\n(.*\n)*?  Reader::read_byte\(\) at stacked_program.cpp:\d+$", seen, re.M), seen)
        tool("profile", started.pid, "300ms")
    check("no EINTR is seen", started.lines == ["read"], started.lines)


def check_profile():
    with program("both") as started:
        pid, file = started.pid, FOLDER / "cpu.svg"
        seen = tool("profile", pid, "4s", "-o", file)
        # A sample from the first instants of a turn, before its first message begins, names the handler of the turn before.
        shares = collections.Counter()
        for share, name in re.findall(r"^ *[0-9.]+[mun]?s +([0-9.]+)%  &(\w+)::", seen, re.M):
            shares[name] += float(share)
        check("a table", re.match(r"\d\.\d\d s of processor time in \d+\.\d s\n   time  share  handler\n", seen), seen)
        whole = shares["Large"] + shares["Small"]
        check("both handlers use nearly all", whole > 80, seen)
        check("one of them three times as much", abs(100 * shares["Large"] / whole - 75) < 10, seen)
        text = file.read_text()
        boxes = [one.text for one in xml.etree.ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}title")]
        check("a flame graph", all(any(box.startswith(name) for box in boxes) for name in ("&Large::large_part of Large (", "Small::small_part() (", "compute(")), boxes)
        check("it is plain, and loads and runs nothing", text.isascii() and not re.search(r"href|script|url\(|@import", text), text[:500])
        lines = tool("profile", pid, "1s", "--collapsed").splitlines()
        check("collapsed stacks", lines and all(re.fullmatch(r"\S.* \d+", line) for line in lines), lines)
        check("from the handler inwards", any(re.match(r"&Large::large_part of Large;Large::large_part\(\);compute\(", line) for line in lines), lines)
        said = tool("profile", pid, "1s", "-o", file, code=1)
        check("a file that exists", "exists" in said and file.read_text() == text, said)
        said = tool("profile", pid, "1s", "-o", FOLDER / "nowhere" / "a.svg", code=1)
        check("a folder that does not exist", "cannot be written" in said, said)
        check("a duration", "is no duration" in tool("profile", pid, "5h", code=1))
        # The program ends while it is looked at: what was seen until then is shown.
        profile = subprocess.Popen([TOOL, "profile", str(pid), "50s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        time.sleep(2)  # sleeps: the tool says nothing when it has begun
    out, said = profile.communicate(timeout=SECONDS_MAX)
    check("a program that ends", profile.returncode == 0 and "Large" in out and "has ended" in said, (out, said))
    said = tool("stack", started.pid, code=1)
    check("a process that has ended", "there is no process" in said or "cannot be asked" in said, said)


def check_turns():
    """`troupe dump` shows the last turns of a program with a flight recorder, with the lines of their handlers."""
    lines = {name: 1 + next(i for i, line in enumerate(SOURCE) if text in line) for name, text in
             (("add", "void Tally::add(int more) {"), ("clear", "void clear() {"))}
    wanted = [f"&Tally::{name} (stacked_program.cpp:{line})" for name, line in lines.items()]
    with program("turns", TROUPE_FLIGHT_RECORDER="1") as started:
        def shown():
            return tool("dump", started.pid).partition("the last turns, newest first")[2]
        seen = until(shown, lambda seen: seen.count("&Tally::") >= 2)
        check("the handler with its definition", wanted[0] in seen, seen)
        handlers = re.findall(r"#\d+ (&Tally::\w+[^,\n]*)", seen)
        check("each handler has its line", handlers and set(handlers) <= set(wanted), seen)
        check("all lines, if they are asked for", wanted[0] in tool("dump", started.pid, "--all"), seen)
    with program("spin") as started:
        check("without a flight recorder", "the last turns" not in tool("dump", started.pid))


def check_refusals():
    for arguments, words in ((["stack", 1], "TROUPE_OBSERVE=1"), (["profile", 1, "1s"], "TROUPE_OBSERVE=1")):
        check(f"{arguments}", words in (said := tool(*arguments, code=1)), said)
    for arguments in (["stack"], ["stack", "x"], ["profile", "x", "1s"]):
        check(f"{arguments}", "PID must be the number of a process" in (said := tool(*arguments, code=2)), said)
    tool("stack", 1, "x", code=2)
    with program("signals") as started:
        seen = until(lambda: tool("stack", started.pid), lambda seen: "Spinner" in seen)
        check("no signal is free", "  no stack: the program uses all real-time signals" in seen, seen)
    with program("private") as started:
        said = tool("stack", started.pid, code=1)
        check("a program that hides its memory", "PR_SET_DUMPABLE" in said or "cannot be read" in said, said)


def main():
    try:
        check_refusals()
        check_turns()
        check_spinning()
        check_blocked()
        check_profile()
        print("stack: the functions are seen")
    except AssertionError as wrong:
        sys.exit(f"stack: {wrong}")
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
