"""pipeline against a report made here, on every policy, and with an input that is many times larger than
the memory that it may take."""

import os
import pathlib
import random
import subprocess
import sys

PIPELINE = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "pipeline"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "pipeline_check"
SECONDS_MAX = 100
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_WORKERS": "2", "TROUPE_POLICY": "shared_queue"}, {"TROUPE_POLICY": "simulated"}]
SMALL_ROWS, LARGE_ROWS = 100_000, 3_000_000  # of 16 bytes
KB_MORE_MAX = 8 * 1024


def fail(text):
    print(f"pipeline: {text}")
    sys.exit(1)


def pipeline(*arguments, environment=None):
    return subprocess.run([PIPELINE, *map(str, arguments)], capture_output=True, timeout=SECONDS_MAX, text=True,
                          cwd=FOLDER, env={**os.environ, **(environment or {})})


def degrees(tenths):
    return f"{'-' if tenths < 0 else ''}{abs(tenths) // 10}.{abs(tenths) % 10}"


def expected_report(rows):
    stations = {}
    for name, tenths in rows:
        stations.setdefault(name.encode(), []).append(tenths)
    lines = []
    for name in sorted(stations):
        all_of = stations[name]
        mean = abs(sum(all_of)) // len(all_of) * (-1 if sum(all_of) < 0 else 1)
        lines.append(f"{name.decode()}: least {degrees(min(all_of))}, mean {degrees(mean)}, most {degrees(max(all_of))}, "
                     f"of {len(all_of)}\n")
    return "".join(lines)


def check(text, rows, bad, environment):
    (FOLDER / "input.csv").write_bytes(text)
    report = FOLDER / "report.txt"
    report.unlink(missing_ok=True)
    done = pipeline("input.csv", "report.txt", environment=environment)
    stations = len({name for name, _ in rows})
    summary = f"{len(rows)} rows of {stations} stations, {bad} bad rows, {len(text)} bytes: report.txt\n"
    if done.returncode != 0 or done.stderr or done.stdout != summary:
        fail(f"{environment}: ended with {done.returncode}: {done.stdout}{done.stderr}, but {summary} was due")
    if report.read_text() != expected_report(rows):
        fail(f"{environment}: another report than that of {FOLDER}/input.csv")


def random_rows(count):
    numbers = random.Random(5)
    names = ["Oslo", "São Paulo", "a", "Longyearbyen " * 5] + [f"station {i}" for i in range(2000)]
    return [(numbers.choice(names), numbers.randint(-999, 999)) for _ in range(count)]


def check_reports():
    rows = random_rows(60_000)
    text = "".join(f"{name},{degrees(tenths)}\n" for name, tenths in rows)
    odd = [("Oslo", 10), ("Oslo", -5), ("x", 0)]
    odd_text = "Oslo,1\r\n\nOslo,-0.5\nno comma\nOslo,warm\nOslo,1.55\n,3.0\nx,0.0"
    for environment in POLICIES:
        check(text.encode(), rows, 0, environment)
        check(odd_text.encode(), odd, 4, environment)
        check(b"", [], 0, environment)


def check_refusals():
    if (done := pipeline("no_such_file")).returncode != 1 or "no_such_file" not in done.stderr:
        fail(f"a missing input: {done}")
    for arguments in (["--rows"], ["--rows", "x"], ["a", "b", "c"], ["--what"]):
        if (done := pipeline(*arguments)).returncode != 2 or "usage" not in done.stderr:
            fail(f"{arguments}: {done}")
    (FOLDER / "input.csv").write_text("x" * 1_000_000)
    if (done := pipeline("input.csv")).returncode != 1 or "too long" not in done.stderr:
        fail(f"a line without end: {done}")


def peak_kb(rows):
    """The most memory that it takes for an input of its own, of so many rows; and checks its progress bar."""
    with open(FOLDER / "progress", "w") as progress:
        process = subprocess.Popen([PIPELINE, "--progress", "--rows", str(rows)], stdout=subprocess.PIPE, stderr=progress,
                                   text=True, cwd=FOLDER, env={**os.environ, "TROUPE_WORKERS": "2"})
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0 or not printed.startswith(f"{rows} rows of 40 stations, 0 bad rows"):
        fail(f"{rows} rows of its own: {status}: {printed}")
    bars = (FOLDER / "progress").read_bytes().decode().strip("\r\n").split("\r")
    if bars[-1] != f"[{25 * '#'}] 100 %" or len(bars) < 5:
        fail(f"the progress bar: {bars}")
    return usage.ru_maxrss


FOLDER.mkdir(exist_ok=True)
check_reports()
check_refusals()
small, large = peak_kb(SMALL_ROWS), peak_kb(LARGE_ROWS)
if large > small + KB_MORE_MAX:
    fail(f"{large} KB for {LARGE_ROWS} rows, but {small} KB for {SMALL_ROWS}: its memory is not flat")
