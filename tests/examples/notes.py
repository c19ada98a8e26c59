"""notes calls SQLite on one thread only, and loses no row: another reader of the file counts them."""

import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

NOTES = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "notes"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "notes_check"
SECONDS_MAX = 60
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_POLICY": "shared_queue", "TROUPE_WORKERS": "2"}, {"TROUPE_POLICY": "simulated"}]


def fail(text):
    print(f"notes: {text}")
    sys.exit(1)


def start(*arguments, environment=None):
    return subprocess.Popen([NOTES, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **(environment or {})})


def end(process):
    out, err = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, out, err


def check_words(what, ended, rows):
    code, out, err = ended
    if code != 0:
        fail(f"{what}: ended with {code}: {err}")
    if not re.match(rf"{rows} notes written to .* in \d+ transactions\n"
                    r"\d+ calls of SQLite, from open to close on one thread\n\Z", out):
        fail(f"{what}: printed {out}")
    calls, transactions = (int(re.search(pattern, out)[1]) for pattern in (r"(\d+) calls", r"in (\d+) trans"))
    if calls < 4 * rows or not 1 <= transactions <= rows:
        fail(f"{what}: {calls} calls and {transactions} transactions for {rows} rows")


def check_rows(what, file, runs, writers, notes):
    """Every note of every writer is there once, in the order in which it was written."""
    database = sqlite3.connect(file)
    for run in range(1, runs + 1):
        found = {}
        for writer, number, text in database.execute(
                "SELECT writer, number, text FROM notes WHERE run = ? ORDER BY id", (run,)):
            if text != f"note {number}":
                fail(f"{what}: note {number} of writer {writer} says {text}")
            found.setdefault(writer, []).append(number)
        if found != {writer: list(range(1, notes + 1)) for writer in range(1, writers + 1)}:
            fail(f"{what}: run {run} is not {notes} notes in order of each of {writers} writers")
    total = database.execute("SELECT count(*) FROM notes").fetchone()[0]
    if total != runs * writers * notes:
        fail(f"{what}: {total} rows, not {runs * writers * notes}")
    database.close()


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    file = FOLDER / "notes.db"
    writers, notes = 40, 130  # two pages and a part
    for run, environment in enumerate(POLICIES, 1):
        ended = end(start(file, "--writers", writers, "--notes", notes, environment=environment))
        check_words(environment, ended, writers * notes)
        check_rows(environment, file, run, writers, notes)
    check_words("in memory", end(start()), 10_000)
    many = FOLDER / "many.db"
    check_words("many writers", end(start(many, "--writers", 2_000, "--notes", 2)), 4_000)
    check_rows("many writers", many, 1, 2_000, 2)

    # Two programs at once wait for each other.
    shared = FOLDER / "shared.db"
    check_words("the first", end(start(shared, "--writers", 5, "--notes", 100)), 500)
    for ended in [end(p) for p in [start(shared, "--writers", 5, "--notes", 100) for _ in range(2)]]:
        check_words("two at once", ended, 500)
    check_rows("two at once", shared, 3, 5, 100)

    # What SQLite says reaches the user, whether it refuses to open the file or to write to it.
    (FOLDER / "text.db").write_text("this is no database " * 100)
    other = FOLDER / "other.db"
    sqlite3.connect(other).executescript("CREATE TABLE notes (id INTEGER PRIMARY KEY, run CHECK (run < 0), "
                                         "writer, number, text)").close()
    for path, words in ((FOLDER / "no" / "such.db", "unable to open database file"),
                        (FOLDER / "text.db", "file is not a database"), (other, "CHECK constraint failed")):
        code, out, err = end(start(path))
        if code != 1 or words not in err or str(path) not in err or out:
            fail(f"{path}: ended with {code} and said {err} {out}")
    one, two = FOLDER / "one.db", FOLDER / "two.db"
    for arguments in (["--writers", "0"], ["--writers", "10001"], ["--notes", "x"], ["--notes"], ["--what"], [one, two],
                      ["--writers", "2", "--writers", "3"], ["--notes", "2", "--notes", "2"]):
        code, out, err = end(start(*arguments))
        if code != 2 or not err.startswith("usage:"):
            fail(f"{arguments}: ended with {code} and said {err}")
    if one.exists() or two.exists():
        fail("wrong arguments made a file")
    print("notes: one thread, no row lost")


main()
