"""What a trace has, and that it keeps to the formats: Chrome's for viewers, a table for people.

Chrome's format as ui.perfetto.dev and speedscope read it: an object with traceEvents; each of them has ph, pid, tid, name, and but
for metadata ts, in microseconds; X has dur; the X of one thread lie within each other or apart, never across; an arrow begins with s and ends with f,
which have an id, and the arrows of one id follow each other."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

PROGRAM = pathlib.Path(sys.argv[1])
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "trace_check"
SECONDS_MAX = 30
POLICIES = ["work_stealing", "shared_queue", "simulated"]


def fail(text):
    print(f"trace: {text}")
    sys.exit(1)


def run(ending, setting, policy="work_stealing"):
    environment = {**os.environ, "TROUPE_TRACE": setting, "TROUPE_POLICY": policy, "TROUPE_WORKERS": "2", "ASAN_OPTIONS": "handle_abort=0"}
    return subprocess.run([PROGRAM, ending], capture_output=True, text=True, errors="replace", timeout=SECONDS_MAX,
                          env=environment)


def events_of(path):
    """The events, checked against the format."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    if set(trace) != {"displayTimeUnit", "traceEvents", "otherData"} or trace["displayTimeUnit"] not in ("ns", "ms"):
        fail(f"{path}: has {sorted(trace)}")
    stretches = {}
    for event in trace["traceEvents"]:
        kind = event.get("ph")
        if kind not in ("M", "X", "i", "s", "f") or not isinstance(event.get("name"), str) or event.get("pid") != 1:
            fail(f"{path}: is no event: {event}")
        if kind == "M":
            if event["name"] not in ("process_name", "thread_name") or not isinstance(event["args"]["name"], str):
                fail(f"{path}: is no metadata: {event}")
            if event["name"] == "process_name" and event["args"]["name"] != PROGRAM.name:
                fail(f"{path}: is the trace of another program: {event}")
            continue
        if not isinstance(event["tid"], int) or not isinstance(event["ts"], (int, float)) or event["ts"] < 0 or not event["cat"]:
            fail(f"{path}: has no place or time: {event}")
        if kind == "i" and event["s"] != "t":
            fail(f"{path}: an instant of no thread: {event}")
        if kind in ("s", "f") and (not isinstance(event.get("id"), str) or event.get("bp") != ("e" if kind == "f" else None)):
            fail(f"{path}: is no end of an arrow: {event}")
        if kind == "X":
            if event["dur"] < 0 or event["dur"] > SECONDS_MAX * 1e6:
                fail(f"{path}: lasts impossibly long: {event}")
            stretches.setdefault(event["tid"], []).append((event["ts"], -event["dur"], event["name"]))
    for thread, all_of_it in stretches.items():
        open_until = []
        for begin, minus_duration, name in sorted(all_of_it):
            end = begin - minus_duration
            while open_until and open_until[-1] <= begin + 0.001:
                open_until.pop()
            if open_until and end > open_until[-1] + 0.0015:
                fail(f"{path}: {name} of thread {thread} lies across another one")
            open_until.append(end)
    return trace["traceEvents"], trace["otherData"]


def expect(events, kind, category, pattern, least=1, most=None):
    found = [e for e in events if e["ph"] == kind and e.get("cat") == category and re.fullmatch(pattern, e["name"])]
    if len(found) < least or (most is not None and len(found) > most):
        fail(f"{len(found)} events {kind} {category} {pattern!a}, not {least} to {most}")
    return found


def check_lazies(events, policy):
    """Each lazy has a number of its own, and the line that made it."""
    source = pathlib.Path(__file__).with_name("program.cpp").read_text(encoding="utf-8").splitlines()
    made_at = {number for number, text in enumerate(source, 1) if "troupe::lazy(" in text or "troupe::lazy later(" in text}
    lines = {}
    for event in events:
        if event.get("cat") == "lazy":
            lines.setdefault(event["args"]["lazy"], set()).add(event["args"]["line"])
    if 0 in lines or any(len(of_one) != 1 for of_one in lines.values()):
        fail(f"{policy}: a lazy has no number, or shares it: {lines}")
    if set.union(*lines.values()) != made_at or len(lines) < 5:
        fail(f"{policy}: lazies of {made_at} were made at {lines}")


def check_arrows(events, policy):
    """Each message that was sent and handled has one, from the moment to the stretch. Ids are addresses, which come again."""
    ends = {}
    for event in events:
        if event["ph"] in ("s", "f"):
            ends.setdefault(event["id"], []).append((event["ts"], event["ph"] == "f", event))
    arrows = []
    for of_one in ends.values():
        begun = None
        for _, is_end, event in sorted(of_one, key=lambda each: each[:2]):
            if is_end and begun is not None:  # a message of the library itself has no moment in which it was sent
                arrows.append((begun, event))
            begun = None if is_end else event
    sent = {(e["tid"], e["ts"]): e["name"].removeprefix("sent ") for e in events if e["ph"] == "i" and e.get("cat") == "message"}
    handled = {(e["tid"], e["ts"]): e["name"] for e in events if e["ph"] == "X" and e.get("cat") == "message"}
    names = []
    for begin, end in arrows:
        names.append(sent.get((begin["tid"], begin["ts"])))
        if names[-1] is None or names[-1] != handled.get((end["tid"], end["ts"])):
            fail(f"{policy}: an arrow between {begin} and {end}")
    if sum(name.endswith("Counter::add") for name in names) != 100 or not any(name.endswith("Asker::ask_slowly") for name in names):
        fail(f"{policy}: messages have no arrow: {names}")


def check_everything(policy):
    path = FOLDER / f"{policy}.json"
    done = run("return", str(path), policy)
    if done.returncode != 0 or done.stderr:
        fail(f"{policy}: ended with {done.returncode}: {done.stderr}")
    events, other = events_of(path)
    if int(other["events overwritten by later ones"]) != 0:
        fail(f"{policy}: events were lost: {other}")
    expect(events, "i", "actor", r"spawned .*Counter", 1, 1)
    expect(events, "i", "actor", r"ended .*Counter", 1, 1)
    expect(events, "i", "message", r"sent .*Counter::add", 100, 100)
    expect(events, "X", "message", r".*Counter::add", 100, 100)
    turns = expect(events, "X", "turn", r".*Counter")
    actor = expect(events, "i", "actor", r"spawned .*Counter")[0]["args"]["actor"]
    if any(turn["args"]["actor"] != actor for turn in turns):
        fail(f"{policy}: turns of other actors: {turns}")
    expect(events, "X", "message", r".*Asker::ask_slowly", 2)
    expect(events, "i", "coroutine", r"suspended: sleep_for", 1, 1)
    expect(events, "i", "timer", r"timer", 2)
    expect(events, "X", "post", r"posted procedure", 1)
    expect(events, "i", "io", r"begins readable", 1, 1)
    expect(events, "i", "io", r"ended readable", 1, 1)
    expect(events, "X", "lazy", r".*", 9)  # and proxy_jobs, for what another thread keeps
    expect(events, "i", "lazy", r"queued .*", 1)
    expect(events, "i", "lazy", r"inline .*", 1)
    check_lazies(events, policy)
    check_arrows(events, policy)
    expect(events, "i", "context", r"made context work", 1, 1)
    expect(events, "i", "context", r"ended context", 1)
    expect(events, "X", "user", "compute", 2, 2)
    expect(events, "i", "user", "no text: \ufffd\ufffd\\(\u20ac", 2, 2)
    expect(events, "i", "user", "two\nlines\x1b\\[31m\x7f", 2, 2)
    expect(events, "i", "user", 'the total "so far"', 1, 1)[0]["args"]["value"] == 100 or fail("the mark has another value")
    if policy != "simulated":
        expect(events, "X", "sched", "parked", 1)
        names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        if not any(name.startswith("worker") for name in names):
            fail(f"{policy}: no thread is a worker: {names}")


def check_crowd():
    """A table has so many threads; main and the workers are among them, and how many are not is told."""
    done = run("crowd", "text")
    *rows, last = done.stderr.splitlines()
    said = re.fullmatch(r"(\d+) other threads were left out: a table has 256, main and the workers, and then the youngest", last)
    numbers = {int(row[:4]) for row in rows[1:]}
    if done.returncode != 0 or not said or len(numbers) != 256:
        fail(f"crowd: ended with {done.returncode}, {len(numbers)} threads, and says: {last}")
    workers = [row for row in rows if row[5:].startswith("worker")]
    if not workers or not any("compute begins" in row and row not in workers for row in rows):
        fail("crowd: the table has not main and the workers")
    if not 145 <= int(said[1]) <= 155:
        fail(f"crowd: {last}")


def check_table():
    done = run("return", "text")
    head, *rows = done.stderr.splitlines()
    if done.returncode != 0 or head.split() != ["Thread", "Queued", "Idle", "Blocked", "Time", "(ms)", "Event"]:
        fail(f"the table begins with: {head}")
    last = 0.0
    for row in rows:
        found = re.fullmatch(r" *\d+ .{12,}? +(\d+) +(\d+) +(\d+) +(\d+\.\d{6})  (\S.*)", row)
        if not found:
            fail(f"is no row: {row}")
        if float(found[4]) < last:
            fail(f"is out of order: {row}")
        last = float(found[4])
    for text in ("sent &", "turn of ", "parked begins", "queued ", "compute begins", "suspended: sleep_for", r"two\x0alines\x1b[31m\x7f"):
        if not any(text in row for row in rows):
            fail(f"the table has no '{text}'")


def check_endings():
    path = FOLDER / "ending.json"
    done = run("exit", str(path))
    events, _ = events_of(path)
    if done.returncode != 3:
        fail(f"exit: ended with {done.returncode}: {done.stderr}")
    expect(events, "X", "user", "compute", 2, 2)
    for ending, by in (("crash", signal.SIGABRT), ("segv", signal.SIGSEGV), ("deep", signal.SIGSEGV)):
        done = run(ending, str(path))
        sanitized = "Sanitizer" in done.stderr
        if (done.returncode != -by and not sanitized) or "the trace up to the crash was written" not in done.stderr:
            fail(f"{ending}: ended with {done.returncode}: {done.stderr}")
        events, _ = events_of(path)
        expect(events, "i", "user", f"crashed: {by.name}", 1, 1)
        expect(events, "X", "user", "about to crash", 1, 1)
        expect(events, "X", "message", ".*Asker::crash", 1, 1)
    # Signals that somebody sends: only where the program leaves them to the system.
    for ending, by in (("interrupt", signal.SIGINT), ("terminate", signal.SIGTERM), ("hang_up", signal.SIGHUP)):
        path.unlink()
        done = run(ending, str(path))
        if done.returncode != -by or "the trace up to the signal was written" not in done.stderr:
            fail(f"{ending}: ended with {done.returncode}: {done.stderr}")
        events, _ = events_of(path)
        expect(events, "i", "user", f"ended by {by.name}", 1, 1)
    done = run("terminate", "text")
    if done.returncode != -signal.SIGTERM or "ended by SIGTERM" not in done.stderr:
        fail(f"terminate: ended with {done.returncode}: {done.stderr}")
    done = run("listen", str(path))
    events, _ = events_of(path)
    if done.returncode != 0 or "up to the signal" in done.stderr or any("ended by" in one.get("name", "") for one in events):
        fail(f"listen: ended with {done.returncode}: {done.stderr}")
    # Two threads at about the same time: the one waits until the other has written.
    done = run("both", str(path))
    sanitized = "Sanitizer" in done.stderr
    if (done.returncode not in (-signal.SIGABRT, -signal.SIGSEGV) and not sanitized) or "the trace up to the crash was written" not in done.stderr:
        fail(f"both: ended with {done.returncode}: {done.stderr}")
    events, _ = events_of(path)
    expect(events, "i", "user", "crashed: .*", 1, 1)
    expect(events, "i", "user", "filled", 2 * 32_000)


def check_handler_before():
    """A handler that was set before gets what the kernel said of the signal, and may let the program continue."""
    path = FOLDER / "mended.json"
    done = run("mended", str(path))
    if done.returncode != 0 or "the trace up to the crash was written" not in done.stderr:
        fail(f"mended: ended with {done.returncode}: {done.stderr}")
    events, _ = events_of(path)
    expect(events, "i", "user", "crashed: SIGSEGV", 1, 1)


def check_flood():
    """Rings are of a fixed size: the newest events stay, and how many went is told."""
    path = FOLDER / "flood.json"
    done = run("flood", str(path))
    events, other = events_of(path)
    if done.returncode != 0 or int(other["events overwritten by later ones"]) == 0:
        fail(f"flood: {done.returncode}, {other}")
    if len(events) > 8 * 32768:
        fail(f"flood: {len(events)} events were kept")
    expect(events, "X", "user", "compute", 1)


def check_settings():
    # What makes no sense is the user's mistake; a file that cannot be written stops no program.
    for setting, words, ends_well in (("yes", "must be text, or", False),
                                      (str(FOLDER / "missing" / "t.json"), "cannot be written", True)):
        done = run("return", setting)
        if (done.returncode == 0) != ends_well or words not in done.stderr or "TROUPE_TRACE" not in done.stderr:
            fail(f"TROUPE_TRACE={setting}: ended with {done.returncode}: {done.stderr}")
    done = run("return", "")
    if done.returncode != 0 or done.stderr:
        fail(f"without a trace: ended with {done.returncode}: {done.stderr}")


def check_pipe():
    path = FOLDER / "pipe.json"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()), daemon=True)
    reader.start()
    done = run("return", str(path))
    reader.join(SECONDS_MAX)
    if done.returncode != 0 or done.stderr or not read or not json.loads(read[0])["traceEvents"]:
        fail(f"a pipe: ended with {done.returncode}: {done.stderr}")


FOLDER.mkdir(exist_ok=True)
for one in POLICIES:
    check_everything(one)
check_table()
check_crowd()
check_endings()
check_handler_before()
check_flood()
check_settings()
check_pipe()
