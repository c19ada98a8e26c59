"""instructions: counts the instructions of one operation by callgrind, beside those that are kept in the tree.

`./bench --instructions` prints all counts, and with --keep writes them to instructions.txt. tests/instructions/check.py compares them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

KEPT = Path(__file__).resolve().parents[1] / "instructions.txt"
SECONDS_MAX = 240
MOST = 0.01  # how far a count may be from the kept one
# Servers and expired timers: how many events a worker finds at a time, and the searches for deadlocks, depend on the clock.
MOST_BY_CLOCK = 0.08
FIB = (15, 21)


def fib_calls(n: int) -> int:
    """Calls of a naive Fibonacci."""
    before, calls = 1, 1
    for _ in range(n - 1):
        before, calls = calls, calls + before + 1
    return calls


@dataclass(frozen=True)
class Operation:
    name: str
    short: int  # the argument of the short run; its count is taken from that of the long run
    long: int
    units: int  # operations by which the long run has more
    most: float = MOST
    without: str = ""  # a shared library whose instructions are not counted


def plain(name: str) -> Operation:
    return Operation(name, 2_000, 22_000, 20_000)


OPERATIONS = (
    plain("ask"),
    plain("spawn"),
    plain("switch"),
    plain("await_ready"),
    Operation("timer_cancelled", 2, 12, 10 * 1_000),
    Operation("timer_fired", 2, 12, 10 * 1_000, MOST_BY_CLOCK),
    plain("ping_pong"),
    Operation("fib", *FIB, fib_calls(FIB[1]) - fib_calls(FIB[0])),
    Operation("http1_plaintext", 20, 100, 80 * 64, MOST_BY_CLOCK),
    Operation("http1_pipelined", 2, 7, 5 * 64 * 16, MOST_BY_CLOCK),
    Operation("http2_plaintext", 2, 7, 5 * 64 * 16, MOST_BY_CLOCK, "libnghttp2"),
)


class Failed(Exception):
    pass


def self_costs(path: str) -> dict[str, int]:
    """What the functions of each object of a profile cost by themselves."""
    costs: dict[str, int] = {}
    names: dict[str, str] = {}
    current, is_inclusive = "", False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?", line):
                if match[3]:
                    names[match[2]] = match[3]
                if not match[1]:
                    current = names[match[2]]
            elif line.startswith("calls="):
                is_inclusive = True
            elif re.match(r"[\d+*-]", line):
                if not is_inclusive:
                    costs[current] = costs.get(current, 0) + int(line.split()[1])
                is_inclusive = False
    return costs


def instructions_of_run(program: str, operation: Operation, number: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile")
        command = ["valgrind", "--tool=callgrind", "--fair-sched=yes", f"--callgrind-out-file={path}.%p", program, operation.name, str(number)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS_MAX, check=False)
        if done.returncode != 0:
            raise Failed(f"{operation.name} ended with status {done.returncode}:\n{done.stdout[-4000:]}")
        # The process that becomes the client leaves a profile of its own, with less in it.
        runs = [self_costs(os.path.join(folder, name)) for name in os.listdir(folder)]
        costs = max(runs, key=lambda run: sum(run.values()))
        return sum(cost for name, cost in costs.items() if not operation.without or operation.without not in name)


def count(program: str, operation: Operation) -> float:
    short, long = (instructions_of_run(program, operation, number) for number in (operation.short, operation.long))
    return (long - short) / operation.units


def read_kept() -> tuple[str, dict[str, tuple[float, int]]]:
    """The compiler, and of each operation the kept count and the aim."""
    compiler, kept = "", {}
    for line in KEPT.read_text().splitlines():
        if line.startswith("compiler "):
            compiler = line.removeprefix("compiler ")
        elif line and not line.startswith("#"):
            name, counted, aim = line.split()
            kept[name] = float(counted), int(aim)
    return compiler, kept


def write_kept(compiler: str, counts: dict[str, float]) -> None:
    aims = {name: aim for name, (_, aim) in read_kept()[1].items()}
    comments = [line for line in KEPT.read_text().splitlines() if line.startswith("#")]
    rows = [f"{name:<16} {counted:>8.1f} {aims[name]:>6}" for name, counted in counts.items()]
    KEPT.write_text("\n".join([*comments, f"compiler {compiler}", *rows]) + "\n")


def compiler_of(command: str) -> str:
    return subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]


def table_line(name: str, counted: float, kept: float, aim: int) -> str:
    change = f"{(counted / kept - 1) * 100:+.1f} %" if kept else ""
    return f"{name:<16} {counted:>10.1f} {kept:>10.1f} {change:>8} {aim:>8}"


HEADER = f"{'instructions of':<16} {'now':>10} {'kept':>10} {'':>8} {'aim':>8}"


def show(program: str, keep: bool) -> int:
    """The whole of `./bench --instructions`."""
    if shutil.which("valgrind") is None:
        sys.exit("./bench: --instructions needs valgrind")
    compiler, kept = read_kept()
    here = compiler_of("g++")
    if here != compiler:
        print(f"The kept counts are those of {compiler}, and these of {here}.")
    print(HEADER, flush=True)
    counts = {}
    for operation in OPERATIONS:
        counts[operation.name] = count(program, operation)
        print(table_line(operation.name, counts[operation.name], *kept[operation.name]), flush=True)
    if keep:
        write_kept(here, counts)
    return 0
