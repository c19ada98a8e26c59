"""nqueens against the known counts, on every policy and pool size, with forks down to the last row."""

import os
import pathlib
import subprocess
import sys

NQUEENS = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "nqueens"
WAYS = {1: 1, 2: 0, 3: 0, 4: 2, 5: 10, 6: 4, 7: 40, 8: 92, 9: 352, 10: 724, 11: 2680}
SECONDS_MAX = 60
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_WORKERS": "2", "TROUPE_POLICY": "shared_queue"}, {"TROUPE_POLICY": "simulated"}]


def nqueens(*arguments, environment=None):
    return subprocess.run([NQUEENS, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(environment or {})})


def expect(what, seen, wanted):
    if seen != wanted:
        print(f"nqueens: {what}: {seen!r}, not {wanted!r}")
        sys.exit(1)


for policy in POLICIES:
    for n, ways in WAYS.items():
        done = nqueens(n, "--alone", 0 if n < 11 else 6, environment=policy)
        expect(f"{n} queens, {policy}", (done.returncode, done.stdout), (0, f"{n} queens: {ways} ways\n"))
for wrong in (["0"], ["21"], ["eight"], ["8", "--alone"], ["8", "--together", "2"], ["8x"]):
    done = nqueens(*wrong)
    expect(f"{wrong}", (done.returncode, done.stdout, done.stderr.startswith("usage:")), (2, "", True))
done = nqueens(4, environment={"TROUPE_WORKERS": "0"})
expect("0 workers", (done.returncode, done.stderr[:24]), (1, "nqueens: troupe: environ"))
with open("/dev/full", "w") as full:
    done = subprocess.run([NQUEENS, "4"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS_MAX)
expect("a full disk", (done.returncode, done.stderr), (1, "nqueens: standard output cannot be written\n"))
