"""Runs a command, writes down the CPU time of what it starts, and ends it at a limit.

Usage: supervise.py units|suites FILE [--in FOLDER] [--limit SECONDS] -- COMMAND...

`units`: COMMAND is a build, and FILE gets the seconds of each object file that it compiles.
`suites`: COMMAND is ctest in FOLDER, and FILE gets the seconds of each suite.
The status is that of COMMAND, or 124 at the limit, when all that it has started is ended. FILE is
JSON: {NAME: SECONDS}.

The kernel counts the time of a process and of its children that have ended; this is read a few
times a second. The last moments of a process are missing, which matters to none that is slow.
Rejected: a launcher in front of each compiler and test, which would be the process that a test's
parent waits for, signals and finds in its process group.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import suites

PERIOD_S = 0.25
GRACE_S = 5
LIMIT_STATUS = 124
TICKS = os.sysconf("SC_CLK_TCK")
OBJECT = re.compile(r"\s-o (\S+\.(?:o|gch))\s")


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def own_ticks(pid):
    """Of the process and of those of its children that it has waited for."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return sum(int(field) for field in text.rpartition(")")[2].split()[11:15])


def ticks(pid):
    return own_ticks(pid) + sum(ticks(child) for child in children(pid))


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def name_of_unit(words):
    found = OBJECT.search(" " + " ".join(words) + " ")
    return found.group(1) if found else None


class Sampler:
    """The processes below one, each under the name of what it works for."""

    def __init__(self, name_of):
        self.name_of = name_of
        self.seconds = {}

    def look(self, pid):
        for child in children(pid):
            name = self.name_of(command_line(child))
            if name is None:
                self.look(child)
            else:
                spent = ticks(child) / TICKS
                self.seconds[name] = max(self.seconds.get(name, 0), spent)


def names_of_suites(folder):
    """ctest names no suite to its process; the command does. An interpreter may have been found by
    another path, therefore a script and its arguments are enough."""
    by_command = {}
    for name, command in suites.commands(folder).items():
        by_command[tuple(command)] = name
        if len(command) > 1 and command[1].startswith("/"):
            by_command[tuple(command[1:])] = name

    def name_of(words):
        return next((by_command[tuple(words[begin:])] for begin in range(min(3, len(words)))
                     if tuple(words[begin:]) in by_command), None)
    return name_of


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def end(process):
    """The process and all below it: first what was started last, which might otherwise be left alone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in [*reversed(list(descendants(process.pid))), process.pid]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        try:
            process.wait(GRACE_S)
            return
        except subprocess.TimeoutExpired:
            pass
    process.wait()


def parsed(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["units", "suites"])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--in", dest="folder")
    parser.add_argument("--limit", type=float, default=float("inf"))
    return parser.parse_args(words)


def main():
    split = sys.argv.index("--")
    options = parsed(sys.argv[1:split])
    sampler = Sampler(names_of_suites(options.folder) if options.kind == "suites" else name_of_unit)
    until = time.monotonic() + options.limit
    process = subprocess.Popen(sys.argv[split + 1:])
    status = None
    while status is None:
        try:
            process.wait(PERIOD_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            sampler.look(process.pid)
            if time.monotonic() > until:
                end(process)
                status = LIMIT_STATUS
        except KeyboardInterrupt:  # the command has it, too
            pass
    options.file.write_text(json.dumps(sampler.seconds, indent=0, sort_keys=True))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
