"""zoo runs for as long as it was told, or until a signal comes, and can be looked into meanwhile."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ZOO = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "zoo"
os.environ["TROUPE_WARNING_LINES"] = "0"  # it is full of what is worth a warning
SECONDS_MAX = 60


def fail(text):
    print(f"zoo: {text}")
    sys.exit(1)


def zoo(*arguments):
    return subprocess.run([ZOO, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def check_end(status, text, errors):
    errors = "".join(line + "\n" for line in errors.splitlines() if "the export by OTLP fails" not in line)  # the pigeon
    if status != 0 or errors or not text.startswith("fed ") or not text.endswith(" fish\n"):
        fail(f"ended with {status}: {text}{errors}")


def check_none():
    """Without troubles there is nothing to warn of."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe_zoo"))
    with subprocess.Popen([ZOO, "--animals", "100", "--troubles", "none"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(folder)}) as program:
        program.stdout.readline()
        time.sleep(2)  # sleeps: the program looks for trouble once a second
        alive = {one["class"] for one in ask(folder, program.pid, "summary")["runtimes"][0]["classes"]}
        if alive & {"Sloth", "Snake", "Parrot", "Bear", "Moth"}:
            fail(f"there is trouble: {alive}")
        program.send_signal(signal.SIGTERM)
        text, errors = program.communicate(timeout=SECONDS_MAX)
        check_end(program.returncode, text, errors)
    shutil.rmtree(folder, ignore_errors=True)


def ask(folder, pid, question):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(SECONDS_MAX)
        stream.connect(str(folder / "troupe" / f"{pid}.sock"))
        stream.sendall(question.encode() + b"\n")
        return json.loads(stream.makefile().readline())


def check_open(number):
    """Ended by this signal; the animals are there."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe_zoo"))
    with subprocess.Popen([ZOO, "--animals", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(folder)}) as program:
        said = program.stdout.readline()
        if str(program.pid) not in said:
            fail(f"said {said}")
        deadline = time.monotonic() + SECONDS_MAX
        while True:  # until the keepers have spawned their animals
            alive = {one["class"]: one["alive"] for one in ask(folder, program.pid, "summary")["runtimes"][0]["classes"]}
            if (alive.get("Ant"), alive.get("Fish")) == (500, 500):
                break
            if program.poll() is not None or time.monotonic() > deadline:
                program.kill()
                fail(f"the animals do not come: {alive} {program.stderr.read()}")
        for one in "Sloth", "Snake", "Parrot", "Mynah":
            if alive.get(one) != 1:
                fail(f"there is no {one}: {alive}")
        program.send_signal(number)
        text, errors = program.communicate(timeout=SECONDS_MAX)
        check_end(program.returncode, text, errors)
    shutil.rmtree(folder, ignore_errors=True)


check_open(signal.SIGTERM)
check_open(signal.SIGINT)
check_none()
done = zoo("--seconds", 1, "--animals", 100)
check_end(done.returncode, done.stdout.split("\n", 1)[1], done.stderr)
for arguments in (["--seconds"], ["--seconds", "0"], ["--seconds", "x"], ["--animals", "99"], ["--animals", "1e3"], ["5"], ["--what"], ["--troubles", "unicorn"]):
    done = zoo(*arguments)
    if done.returncode != 2 or not done.stderr.startswith("usage: zoo"):
        fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")
print("zoo: was open")
