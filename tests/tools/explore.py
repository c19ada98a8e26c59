"""`troupe explore` finds a mistake of each kind, reduces it to a late turn, and `troupe replay` repeats it each time.

Usage: explore.py TOOL PROGRAM
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOOL, PROGRAM = sys.argv[1:3]
SECONDS_MAX = 300
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_explore"))
KINDS = {"crash": "signal: Aborted", "status": "exit status 3", "expect": "the condition is false at", "hang": "it did not end within"}


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def run(*words, **more):
    return subprocess.run([*map(str, words)], cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env={**os.environ, **more})


def found(kind, says):
    """The file that the search writes."""
    file = FOLDER / f"{kind}.schedule"
    limit = ["--run-seconds", 2] if kind == "hang" else []
    done = run(TOOL, "explore", "-o", file, *limit, "--", PROGRAM, kind)
    check(f"{kind} is found", done.returncode == 1 and says in done.stdout, done.stdout + done.stderr)
    check(f"{kind} is one late turn", "reduced to 1 late turn in" in done.stdout, done.stdout)
    check(f"{kind} says how to repeat it", f"troupe replay {file} -- {PROGRAM} {kind}" in done.stdout, done.stdout)
    return file


def repeats(kind, file, times):
    for _ in range(times):
        again = run(TOOL, "replay", file, "--", PROGRAM, kind)
        check(f"{kind} repeats", again.returncode != 0, again.stdout + again.stderr)
        check(f"{kind} meets its hold", "not met" not in again.stderr, again.stderr)


def without_hold_passes(kind, file):
    text = file.read_text()
    file.write_text(re.sub(r"^hold .*\n", "", text, flags=re.M))
    done = run(TOOL, "replay", file, "--", PROGRAM, kind)
    check(f"{kind} passes without its hold", done.returncode == 0, done.stdout + done.stderr)
    file.write_text(re.sub(r"^hold (\w+) \d+", r"hold \1 77", text, flags=re.M))
    done = run(TOOL, "replay", file, "--", PROGRAM, kind)
    check(f"{kind} says that a hold is not met", done.returncode == 0 and "this hold was not met: hold" in done.stderr, done.stderr)


for kind, says in KINDS.items():
    file = found(kind, says)
    if kind == "hang":
        continue
    repeats(kind, file, 100 if kind == "status" else 10)
    without_hold_passes(kind, file)

done = run(TOOL, "explore", "--schedules", 40, PROGRAM, "none")
check("a program that is right passes", done.returncode == 0 and "no failure in 40 schedules" in done.stdout, done.stdout + done.stderr)
done = run(TOOL, "explore", PROGRAM, "idle")
check("a program without a runtime is refused", done.returncode == 1 and "nothing to search" in done.stderr, done.stderr)
done = run(TOOL, "explore", "./nowhere")
check("a program that is missing is named", done.returncode == 1 and "./nowhere cannot be run" in done.stderr, done.stderr)
done = run(TOOL, "explore")
check("a program is asked for", done.returncode == 1 and "a program is missing" in done.stderr, done.stderr)
(FOLDER / "bad").write_text("troupe schedule 1\nhold x\n")
done = run(TOOL, "replay", "bad", PROGRAM)
check("a bad file is named", done.returncode == 1 and "bad, line 2" in done.stderr, done.stderr)
done = run(PROGRAM, TROUPE_REPLAY=str(FOLDER / "bad"))
check("also by the program", done.returncode != 0 and "line 2" in done.stderr, done.stderr)
print("all is well")
