"""`troupe explore` finds a mistake of each kind, reduces it to a late turn, and `troupe replay` repeats it each time.

Usage: explore.py TOOL PROGRAM
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

TOOL, PROGRAM = sys.argv[1:3]
SECONDS_MAX = 300
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_explore"))
# the held turn, the line that sent its message, and where it runs otherwise
LATE = re.compile(r"turn \d+: Clerk::got of Clerk #\d+, sent by Stock #\d+ in turn \d+ at \S*explored_program\.cpp:\d+; "
                  r"it was held, and runs otherwise in turn \d+, before ")
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
    told = done.stdout[done.stdout.index("the turns that led to it:"):]
    check(f"{kind} is told with its lines", LATE.search(told) and "Stock::read of Stock #" in told, done.stdout)
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


def is_drawn(kind, file):
    for name, marks in {"story.svg": ["<svg ", "marker-end", ">Stock #"], "story.txt": ["turn ", "--->", "<---", "held"]}.items():
        done = run(TOOL, "replay", "--story", name, file, "--", PROGRAM, kind)
        check(f"{kind} fails again when it is drawn", done.returncode == 1 and LATE.search(done.stdout), done.stdout + done.stderr)
        drawn = (FOLDER / name).read_text(encoding="ascii")
        check(f"{kind} is drawn as {name}", all(mark in drawn for mark in [*marks, "explored_program.cpp:"]), drawn)
    xml.dom.minidom.parse(str(FOLDER / "story.svg"))


for kind, says in KINDS.items():
    file = found(kind, says)
    if kind == "hang":
        continue
    repeats(kind, file, 100 if kind == "status" else 10)
    is_drawn(kind, file)
    without_hold_passes(kind, file)

done = run(TOOL, "explore", "--story", "found.svg", "--", PROGRAM, "crash")
check("explore draws what it finds", (FOLDER / "found.svg").read_text().startswith("<?xml"), done.stdout + done.stderr)
done = run(TOOL, "replay", "--story", "none.svg", "failure.schedule", "--", PROGRAM, "none")
check("a program that is right has no story", done.returncode == 0 and "did not fail" in done.stdout, done.stdout + done.stderr)
done = run(TOOL, "replay", "--story", "nowhere/a.svg", "failure.schedule", "--", PROGRAM, "crash")
check("a file that cannot be written is named", done.returncode == 1 and "nowhere/a.svg cannot be written" in done.stderr, done.stderr)
done = run(TOOL, "explore", "--schedules", 40, PROGRAM, "none")
check("a program that is right passes", done.returncode == 0 and "no failure in 40 schedules" in done.stdout, done.stdout + done.stderr)
check("the pairs of handlers are counted", "1 of 2 pairs of handlers of an actor ran in both orders\n" in done.stdout, done.stdout)
done = run(TOOL, "explore", "--schedules", 40, "--pairs", PROGRAM, "none")
check("the pair in one order is named", "in one order only:\nClerk::deliver before Clerk::got\n" in done.stdout, done.stdout)
done = run(TOOL, "explore", "--schedules", 40, PROGRAM, "network")
check("no fault happens by itself", done.returncode == 0 and "no failure in 40 schedules" in done.stdout, done.stdout + done.stderr)
done = run(TOOL, "explore", "--faults", "-o", "cut.schedule", "--", PROGRAM, "network")
check("a fault is found", done.returncode == 1 and "exit status 4" in done.stdout and "reduced to 1 fault in" in done.stdout, done.stdout + done.stderr)
check("a fault is told with its turn", re.search(r"  fault in turn \d+, .*: a connection was cut at its send \d+\n", done.stdout), done.stdout)
check("the file has the fault", "\nfault cut " in (FOLDER / "cut.schedule").read_text(), (FOLDER / "cut.schedule").read_text())
done = run(TOOL, "replay", "cut.schedule", "--", PROGRAM, "network")
check("a fault repeats", done.returncode == 4 and "not met" not in done.stderr, done.stdout + done.stderr)
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
