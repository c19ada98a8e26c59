"""Programs that lie to `troupe`, and folders that are not what they seem: it believes none of them, and nothing reaches the terminal.

As root it also asks programs of other users, in a mount namespace with a /tmp of its own; without root, or without the right to make
a namespace, that part is skipped."""

import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOOL, PROGRAM = map(os.path.abspath, sys.argv[1:3])
SECONDS_MAX = 60
NOBODY = 65534
MIB = 1 << 20
ESCAPES = "\x1b]0;OWNED\x07\x1b[31mred\x1b[0m \x9b2J \u202egpj.exe \u2028 \x7f \r\n evil"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_hostile"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER)}


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def tool(*arguments, environment=None, timeout=SECONDS_MAX, **more):
    """(exit status, output, errors, bytes at most in memory)"""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([TOOL, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                   env=environment or ENVIRONMENT, **more)
        watchdog = threading.Timer(timeout, process.kill)
        watchdog.start()
        _, status, used = os.wait4(process.pid, 0)
        watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        return process.returncode, out.read(), errors.read(), used.ru_maxrss * 1024


def check_is_printable(what, data):
    text = data.decode()  # is UTF-8
    bad = [character for character in text if character != "\n" and (ord(character) < 0x20 or 0x7f <= ord(character) < 0xa0
           or character in "\u2028\u2029\u200e\u200f" or "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069")]
    check(f"{what}: nothing controls the terminal", not bad, data[:2000])


# ---- a program that lies ----

class Liar:
    """A process of its own, for the socket has its number."""

    def __init__(self, says, folder=FOLDER / "troupe", pid=None, user=None):
        self.said, self.asked = says, []
        folder.mkdir(mode=0o700, exist_ok=True)
        self.process = subprocess.Popen(["sleep", "600"], user=user)
        self.path = folder / f"{pid or self.process.pid}.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(20)
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def pid(self):
        return self.process.pid

    def serve(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(stream,), daemon=True).start()

    def answer(self, stream):
        try:
            for question in stream.makefile("rb"):
                self.asked.append(question)
                for part in self.said(question.decode().strip()):
                    stream.sendall(part)
        except OSError:
            pass
        stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.listener.close()
        self.path.unlink(missing_ok=True)


def lines(*values):
    return lambda _: [json.dumps(value).encode() + b"\n" for value in values]


def endless(_):
    yield b'{"a":"'
    while True:
        yield b"x" * MIB


def trickle(_):
    while True:
        yield b" "
        time.sleep(0.2)  # sleeps: it is what a slow program does


# What is asked of each liar, and answered by an error or by lines that can be shown.
COMMANDS = (["dump"], ["top", "--once", "--interval", "0.05"], ["top", "--json", "--interval", "0.05"], ["actors"], ["actors", "--json"], ["log"],
            ["metrics"], ["stack"], ["profile", "100ms"])


def runtime_of(text):
    handler = {"handler": text, "messages": 1, "resumed": 0, "failures": 0, "busy_ns": 1, "blocked_ns": 1, "busy_samples": 1, "busy_p50_ns": 1,
               "busy_p99_ns": 1, "wait_p50_ns": 1, "wait_p99_ns": 1, "wait_samples": 1}
    return {"up_ns": 1e9, "workers": [], "running": text, "metrics": {"actors": 1, "suspended": 0, "failures": 0, "dead_letters": 0},
            "total": {"messages": 1}, "warning_counts": {}, "warnings": [
                {"kind": text, "class": text, "handler": text, "actor": 1, "since_ns": 1, "last_ns": 1, "times": 1, "text": text,
                 "subject": text, "advice": text, "longest_ns": 1, "active": True, "severe": True}],
            "classes": [{"class": text, "alive": 1, "spawned": 1, "ended": 0, "suspended": 0, "handlers": [handler]}],
            "http": [{"server": text, "page": text}], "cluster": [], "io": [], "lazies": [], "timers": [{"source": text, "armed": 1, "expired": 0, "cancelled": 0}]}


def all_of(text):
    """An answer to every question, with that text wherever one belongs."""
    stack = {"worker": 1, "thread": -1, "is_blocked": False, "class": text, "handler": text, "actor": 1, "held_ns": -1, "registers": [2**64 - 1] * 17,
             "stack_pointer": 2**64 - 8, "stack": "ff" * 4096}
    return {"threads": [{**stack, "cpu_ns": time.monotonic_ns()}, {**stack, "missing": text, "cpu_ns": 0}],
            "version": 1, "pid": 1, "program": text, "now_ns": 2e9, "runtimes": [runtime_of(text)], "dumps": [text],
            "levels": {text: text}, "tables": [{"prefix": text, "labels": [text], "rows": [{"labels": [text], "values": [1]}],
                                                "numbers": [{"name": text, "metric": text, "kind": text, "unit": text, "help": text}]}],
            "actors": [{"id": 1, "class": text, "mail": 1, "state": text, "name": text, "last_handler": text,
                                                "waits": {"handler": text, "at": text, "for": text}}], "next": 0}


def check_escapes():
    for says in (lines({"error": ESCAPES, "runtimes": []}), lines(all_of(ESCAPES))):
        with Liar(says) as liar:
            for command in COMMANDS:
                status, out, errors, _ = tool(command[0], liar.pid, *command[1:])
                check(f"{command} ends", status in (0, 1), errors)
                check_is_printable(command, out)
                check_is_printable(command, errors)
                check(f"{command} was answered", liar.asked, (out, errors))
                # A single backslash before an x is none of the format's escapes: Prometheus would refuse all numbers.
                check("metrics keep their format", command != ["metrics"] or not re.search(rb"(?<!\\)(\\\\)*\\x", out), out)
            status, out, errors, _ = tool("ps")
            check_is_printable("ps", out)
            check_is_printable("ps", errors)


def shapes():
    yield from ({}, [], None, 5, "x", {"runtimes": 5}, {"runtimes": [5]}, {"runtimes": [{}]}, {"error": 5}, {"error": {}},
                {"actors": {}}, {"actors": [5]}, {"dumps": 5}, {"dumps": [5]}, {"levels": 5}, {"levels": {"x": []}})
    whole = all_of("x")
    for key in whole:
        yield {name: value for name, value in whole.items() if name != key}
    for key in whole["runtimes"][0]:
        for wrong in ({}, [], -1, "x", 1e300, None):
            yield {**whole, "runtimes": [{**whole["runtimes"][0], key: wrong}]}


def check_nonsense():
    """Whatever JSON it is, or none: an error, or something to see; never a crash."""
    answer = [b""]
    with Liar(lambda _: [answer[0]]) as liar:
        for value in shapes():
            answer[0] = json.dumps(value).encode() + b"\n"
            for command in COMMANDS[:4]:
                status, out, errors, _ = tool(command[0], liar.pid, *command[1:])
                check(f"{command} of {answer[0][:300]}", status in (0, 1), (status, out, errors))
        whole = all_of("x")
        for key in whole["threads"][0]:
            for wrong in ({}, -1, "x", 2**64 - 1):
                answer[0] = json.dumps({**whole, "threads": [{**whole["threads"][0], key: wrong}]}).encode() + b"\n"
                status, out, errors, _ = tool("stack", liar.pid)
                check(f"stack of {answer[0][:300]}", status in (0, 1), (status, out, errors))
        for raw in (b"\n", b"{\n", b"\xff\xfe\n", b"[" * 200_000 + b"]" * 200_000 + b"\n", b'{"a":' * 200_000 + b"\n"):
            answer[0] = raw
            for command in COMMANDS:
                status, out, errors, _ = tool(command[0], liar.pid, *command[1:])
                check(f"{command} of {raw[:50]}", status in (0, 1), (status, out, errors))
                check_is_printable(command, out + errors)


def check_bounds():
    with Liar(endless) as liar:
        for command in (["dump"], ["metrics"], ["top", "--once"]):
            status, _, errors, memory = tool(command[0], liar.pid, *command[1:])
            check(f"{command} of an answer without end", status == 1 and b"MiB" in errors, (status, errors))
            check(f"{command} keeps little of it", memory < 200 * MIB, memory)
    with Liar(trickle) as liar:
        began = time.monotonic()
        status, out, errors, _ = tool("ps")
        check("ps gives a slow program up", status == 0 and time.monotonic() - began < 20, errors)
        check("and says so", f"process {liar.pid}".encode() in errors, errors)
        began = time.monotonic()
        status, _, errors, _ = tool("dump", liar.pid)
        check("dump gives it up", status == 1 and b"in time" in errors and time.monotonic() - began < 50, errors)


def check_folders():
    """A folder that others may write to, and one that is none, are not believed."""
    folder = FOLDER / "troupe"
    dead = folder / "4000000.sock"
    with Liar(lines(all_of("x"))) as liar, socket.socket(socket.AF_UNIX) as left:
        left.bind(str(dead))
        left.close()
        folder.chmod(0o777)
        for command in (["dump", liar.pid], ["ps"]):
            _, _, errors, _ = tool(*command)
            check(f"{command} says what is wrong", b"open to other users" in errors, errors)
        check("nobody was asked", not liar.asked, liar.asked)
        folder.chmod(0o700)
        shutil.move(folder, FOLDER / "elsewhere")
        folder.symlink_to(FOLDER / "elsewhere")
        status, _, errors, _ = tool("dump", liar.pid)
        check("a link is not followed", status == 1 and b"is no folder" in errors and not liar.asked, errors)
        tool("ps")
        check("no socket of the dead is removed there", (FOLDER / "elsewhere" / dead.name).exists(), os.listdir(FOLDER / "elsewhere"))
        folder.unlink()
        shutil.move(FOLDER / "elsewhere", folder)
        tool("ps")
        check("it is removed where the folder is the user's alone", not dead.exists() and liar.path.exists(), os.listdir(folder))


# ---- top ----

def check_end_of_input():
    """When the terminal of `top` is closed it ends, and does not draw on."""
    program = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**ENVIRONMENT, "TROUPE_OBSERVE": "1"})
    try:
        check("the program begins", program.stdout.readline() == "ready\n")
        status, out, errors, _ = tool("top", program.pid, "--interval", "0.05")
        check("top without a terminal", status == 0 and out.count(b"handler ") == 1 and b"\x1b" not in out, (status, out, errors))
        child, terminal = pty.fork()
        if child == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.execve(TOOL, [TOOL, "top", str(program.pid), "--interval", "600"], {**ENVIRONMENT, "TERM": "xterm"})
        check("it draws", os.read(terminal, 100), terminal)
        os.close(terminal)
        watchdog = threading.Timer(SECONDS_MAX, os.kill, (child, signal.SIGKILL))
        watchdog.start()
        _, status, used = os.wait4(child, 0)
        watchdog.cancel()
        check("it ends with its terminal", os.WIFEXITED(status), status)
        check("it draws no more", used.ru_utime < 10, used)
    finally:
        program.stdin.close()
        program.wait(timeout=SECONDS_MAX)


# ---- other users, seen by root ----

def start_as(user, path, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    program = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user, group=user, extra_groups=[],
                               cwd="/", env={**clean, "TROUPE_OBSERVE": "1", **environment})
    check("the program begins", program.stdout.readline() == "ready\n")
    return program


def check_users():
    """In a /tmp of its own, as root."""
    clean = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    here = pathlib.Path("/tmp/copies")
    here.mkdir(mode=0o755)
    for path in (TOOL, PROGRAM):
        shutil.copy(path, here)
    copied_tool, copied_program = here / pathlib.Path(TOOL).name, here / pathlib.Path(PROGRAM).name
    # Somebody else has made root's folder, with sockets of a process of root's and of one that does not exist.
    trap = pathlib.Path("/tmp/troupe-0")
    sleeper = subprocess.Popen(["sleep", "600"])
    with Liar(lines(all_of("x")), folder=trap, pid=sleeper.pid) as liar:
        os.chown(trap, NOBODY, NOBODY)
        for command in (["ps"], ["dump", sleeper.pid], ["dump", 4_000_000]):
            status, _, errors, _ = tool(*command, environment=clean)
            check(f"{command} does not believe another user's folder", not liar.asked and (command == ["ps"] or status == 1), errors)
        check("it says whose the folder is", b"belongs to user 65534" in tool("dump", sleeper.pid, environment=clean)[2], errors)
        own = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**clean, "TROUPE_OBSERVE": "1"})
        check("a program of root's begins", own.stdout.readline() == "ready\n")
        _, errors = own.communicate(timeout=SECONDS_MAX)
        check("it reports the folder once", own.returncode == 0 and errors.count("observation fails: /tmp/troupe-0 belongs to user 65534") == 1, errors)
    shutil.rmtree(trap)
    # A user's folder with a socket that has the number of another user's process.
    folder = pathlib.Path("/tmp") / f"troupe-{NOBODY}"
    with Liar(lines(all_of("x")), folder=folder, pid=sleeper.pid) as liar:
        os.chown(folder, NOBODY, NOBODY)
        tool("ps", environment=clean)
        tool("dump", sleeper.pid, environment=clean)
        check("a socket for another user's process is not believed", not liar.asked, liar.asked)
    # The socket of nobody's process, but root is behind it.
    with Liar(lines(all_of("x")), folder=folder, user=NOBODY) as liar:
        status, _, errors, _ = tool("dump", liar.pid, environment=clean)
        check("another user behind the socket is not asked", status == 1 and not liar.asked, (errors, liar.asked))
    sleeper.kill()
    sleeper.wait()
    # Root looks into a user's program; the user does not look into root's.
    theirs, roots = start_as(NOBODY, copied_program), start_as(0, copied_program)
    elsewhere = pathlib.Path("/tmp/elsewhere")
    elsewhere.mkdir(mode=0o700)
    os.chown(elsewhere, NOBODY, NOBODY)
    theirs_elsewhere = start_as(NOBODY, copied_program, XDG_RUNTIME_DIR=str(elsewhere))
    try:
        for program in (theirs, roots, theirs_elsewhere):
            status, out, errors, _ = tool("dump", program.pid, environment=clean)
            check("root may look into all programs", status == 0 and b"Grows" in out, errors)
        _, out, errors, _ = tool("ps", environment=clean)
        for program in (theirs, roots, theirs_elsewhere):
            check("ps lists the programs of all users", str(program.pid).encode() in out, (out, errors))
        asked = subprocess.run([copied_tool, "dump", str(theirs.pid)], capture_output=True, user=NOBODY, group=NOBODY, extra_groups=[], env=clean, check=False)
        check("a user looks into the own program", asked.returncode == 0, asked)
        asked = subprocess.run([copied_tool, "dump", str(roots.pid)], capture_output=True, user=NOBODY, group=NOBODY, extra_groups=[], env=clean, check=False)
        check("a user does not look into root's program", asked.returncode == 1, asked)
    finally:
        for program in (theirs, roots, theirs_elsewhere):
            program.stdin.close()
            program.wait(timeout=SECONDS_MAX)


def check_private_tmp():
    """A service of systemd with PrivateTmp= has a /tmp of its own; `ps` and the others find its socket through its process."""
    clean = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    program = subprocess.Popen(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$0\"", PROGRAM], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**clean, "TROUPE_OBSERVE": "1"})
    try:
        check("the program begins", program.stdout.readline() == "ready\n")
        check("its socket is not in this /tmp", not pathlib.Path(f"/tmp/troupe-0/{program.pid}.sock").exists())
        status, out, errors, _ = tool("dump", program.pid, environment=clean)
        check("a program with a /tmp of its own is asked", status == 0 and b"Grows" in out, errors)
        check("and listed", str(program.pid).encode() in tool("ps", environment=clean)[1])
    finally:
        program.stdin.close()
        program.wait(timeout=SECONDS_MAX)


def run_users():
    if os.geteuid() != 0:
        print("hostile: partly skipped: needs root: nothing was seen of other users")
        return
    alone = subprocess.run(["unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"", "sh",
                            sys.executable, __file__, TOOL, PROGRAM, "users"], capture_output=True, text=True, check=False)
    if "unshare" in alone.stderr and "not permitted" in alone.stderr or "mount:" in alone.stderr and "denied" in alone.stderr:
        print("hostile: partly skipped: needs mount namespaces: nothing was seen of other users")
        return
    check("other users", alone.returncode == 0, alone.stdout + alone.stderr)


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        if sys.argv[3:] == ["users"]:
            check_users()
            check_private_tmp()
            return
        check_escapes()
        check_nonsense()
        check_bounds()
        check_folders()
        check_end_of_input()
        run_users()
        print("hostile: nobody was believed")
    except AssertionError as wrong:
        print(f"hostile: {wrong}")
        sys.exit(1)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
