"""philosophers all eat as often as they were told, on every policy; told to deadlock, it says who waits for what."""

import os
import pathlib
import re
import subprocess
import sys

PHILOSOPHERS = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "philosophers"
SECONDS_MAX = 60
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_POLICY": "shared_queue", "TROUPE_WORKERS": "2"}] + [
                {"TROUPE_POLICY": "simulated", "TROUPE_SEED": str(seed)} for seed in range(1, 21)]


def fail(text):
    print(f"philosophers: {text}")
    sys.exit(1)


def philosophers(*arguments, environment=None):
    return subprocess.run([PHILOSOPHERS, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(environment or {})})


def check(count, meals, environment=None):
    what = f"{count} philosophers, {meals} meals, {environment}"
    done = philosophers("--philosophers", count, "--meals", meals, environment=environment)
    if done.returncode != 0 or done.stderr:
        fail(f"{what}: ended with {done.returncode}: {done.stderr}")
    head, *rows, forks = done.stdout.splitlines()
    if head.split() != ["philosopher", "meals", "longest", "wait"]:
        fail(f"{what}: printed {done.stdout}")
    found = [re.fullmatch(r" *(\d+) +(\d+) +\d+\.\d{3} ms", row) for row in rows]
    if not all(found) or [(int(row[1]), int(row[2])) for row in found] != [(i + 1, meals) for i in range(count)]:
        fail(f"{what}: printed {done.stdout}")
    if forks != f"each fork was used {2 * meals} times":
        fail(f"{what}: {forks}")
    return done.stdout


def check_deadlock():
    for environment in POLICIES:
        done = philosophers("--left-first", "--philosophers", 2, "--meals", 100_000, environment=environment)
        waits = re.findall(r"Philosopher #\d+ in &Philosopher::dine waits at .* for the answer of &Fork::take", done.stderr)
        if done.returncode != 1 or len(waits) != 2 or done.stdout:
            fail(f"{environment}: left fork first: ended with {done.returncode}: {done.stderr} {done.stdout}")


def main():
    for environment in POLICIES:
        for count, meals in ((2, 50), (3, 1), (5, 100)):
            check(count, meals, environment)
    check(1_000, 3)
    simulated = {"TROUPE_POLICY": "simulated"}
    if check(5, 100, simulated) != check(5, 100, simulated):
        fail("the same seed should give the same evening, to the microsecond of virtual time")
    check_deadlock()
    for arguments in (["--meals"], ["--meals", "0"], ["--meals", "x"], ["--meals", "1000001"], ["--philosophers", "1"],
                      ["--philosophers", "1001"], ["5"], ["--what"], ["--meals", "1", "--meals", "1"],
                      ["--left-first", "--left-first"]):
        done = philosophers(*arguments)
        if done.returncode != 2 or not done.stderr.startswith("usage:"):
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")
    print("philosophers: nobody starves")


main()
