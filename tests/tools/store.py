"""`troupe store` on the file that version 0.1 has written, and on a copy of it in PostgreSQL: what it shows, and that copies by export and import
are the same, whatever the database."""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/servers"))
import servers  # noqa: E402

BUILT = pathlib.Path(os.environ["TROUPE_BINARY_DIR"])
TOOL = BUILT / "tools/troupe"
FIXTURE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "tests/durable/fixtures/0.1.db"
NAMED = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "tests/durable/stored/before_full.db"
SECONDS_MAX = 60
NOTHING = '["troupe store",2]\n["end",0]\n'


def fail(text):
    print(f"store: {text}")
    sys.exit(1)


def run(*words, status=0):
    done = subprocess.run([TOOL, "store", *map(str, words)], capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode != status:
        fail(f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout if status == 0 else done.stderr


def check(what, got, wanted):
    if got != wanted:
        fail(f"{what}: {got!r}, not {wanted!r}")


def check_refused(what, text, *words):
    said = run(*words, status=1)
    if text not in said:
        fail(f"{what}: {said}")


def check_shown(store):
    words = [line.split() for line in run(store, "ls").splitlines()]
    check("ls", words, [["class", "schema", "actors"], ["Counter", "1", "1"], ["Customer", "1", "1"], ["Waiting", "1"],
                        ["messages", "that", "wait", "1"], ["dead", "letters", "1"], ["reminders", "0"], ["stored", "answers", "1"]])
    first, state = run(store, "show", "Customer", "ada").split("\n", 1)
    check("head", first, "state, schema 1, 95 bytes:")
    check("state", json.loads(state),
          {"name": "Ada", "lines": [{"what": "pen", "cents": 120}, {"what": "ink", "cents": 99}, {"what": "added", "cents": 5}],
           "marks": [["a", 1], ["b", None]], "either": "text", "waits": "1500 * 1/1000 s"})
    # That version has kept no shapes of events.
    check("events", run(store, "show", "Counter", "c").splitlines()[-3:],
          ["2 events since then", 'event 5: "05000000"', 'event 6: "06000000"'])
    check("keys", run(store, "keys", "Customer"), "ada\n")
    check("keys of events", run(store, "keys", "Counter"), "c\n")
    check("no keys", run(store, "keys", "Waiting"), "")
    check_refused("keys of a class that is not there", "there is no class Bank", store, "keys", "Bank")
    letters = run(store, "dead-letters")
    if "Customer ada refuse: poison (std::runtime_error), 1 failures" not in letters:
        fail(f"dead letters: {letters}")
    check_refused("an actor that is not there", "there is no Customer bob", store, "show", "Customer", "bob")


def check_handled_again(store):
    run(store, "dead-letters", "--again", run(store, "dead-letters").split()[0])
    check("no dead letter is left", run(store, "dead-letters"), "")
    check("messages", run(store, "ls").splitlines()[-4].split()[-1], "2")
    check_refused("a dead letter that is not there", "there is no dead letter 77", store, "dead-letters", "--again", 77)


def check_copies(lines_file, store, empty):
    """`store` and `empty` have no rows; the first one gets those of the file."""
    lines = lines_file.read_text()
    run(store, "import", lines_file)
    check("the copy", run(store, "export"), lines)
    check_shown(store)
    check_refused("an import into a store with rows", "rows already", store, "import", lines_file)
    bad = lines_file.with_name("bad.json")
    for was, now, why in (("durable_dead", "durable_dear", "there is no table durable_dear"), ('"durable_events","Counter"', '"durable_events",5', "line"),
                          ('["troupe store",2]\n', "", "no export of a store"), ("store\",2", "store\",3", "version 3"), ("\n", "\n[\n", "line 2"),
                          ('["end"', '["end",1]\n["end"', "the export had 1 rows")):
        bad.write_text(lines.replace(was, now, 1))
        check_refused(f"an import with {now!r}", why, empty, "import", bad)
        if now and "version" not in why and now != "\n[\n":
            check("after it", run(empty, "export"), NOTHING)
    rows = lines.splitlines(keepends=True)
    for cut in 1, 2, len(rows) - 1:
        bad.write_text("".join(rows[:cut]))
        check_refused(f"an import of {cut} lines", "was cut off", empty, "import", bad)
        check("after it", run(empty, "export"), NOTHING)
    bad.write_text(lines + rows[1])
    check_refused("a row behind the last line", "behind the last line", empty, "import", bad)
    check_handled_again(store)


def owner_of(file):
    with contextlib.closing(sqlite3.connect(file)) as db:
        return db.execute("SELECT value FROM durable_meta WHERE name = 'owner'").fetchone()


def add_strange_key(file):
    """An actor whose key has a zero byte and is no UTF-8."""
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO durable_state SELECT kind, CAST(x'61ff005c62' AS TEXT), \"schema\", fingerprint, number, value FROM durable_state "
                   "WHERE kind = 'Customer'")


def check_strange_texts(file):
    """States and errors may be any bytes: terminals get no control characters, and `show` ends well."""
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE durable_state SET value = CAST(replace(CAST(value AS TEXT), 'Ada', CAST(x'ff1b41' AS TEXT)) AS BLOB) WHERE key = 'ada'")
        db.execute("UPDATE durable_dead SET error = CAST(x'1b5b326aff0ac29bc3a9' AS TEXT)")
    state = json.loads(run(file, "show", "Customer", "ada").split("\n", 1)[1])
    check("a text that is no UTF-8", state["name"], {"hex": "FF1B41"})
    letters = run(file, "dead-letters")
    if r"\x1b[2j\xff\x0a\xc2\x9bé" not in letters or len(letters.splitlines()) != 1:
        fail(f"a strange error: {letters!r}")


def check_named(file):
    """Shapes of classes and methods with names are no classes."""
    shutil.copy(NAMED, file)
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO durable_classes VALUES ('house full', 1, 0, '{}')")
    words = [line.split() for line in run(file, "ls").splitlines()]
    check("classes", words[1:4], [["house", "1", "1"], ["sum", "1", "1"], ["sum", "event", "1"]])
    check("what follows", words[4][0], "messages")
    check("events with a shape", run(file, "show", "sum", "s").splitlines(),
          ["2 events, and no state yet", 'event 1: {"by":50}', 'event 2: {"by":8}'])


def check_pages(file, copy):
    """Keys come in pages, in the order of their bytes, whether an actor has a state, events or both."""
    shutil.copy(NAMED, file)
    keys = [f"a{i:02}" for i in range(30)] + ["b", "bä", "ba", "it's"]
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        for i, key in enumerate(keys):
            if i % 3 != 1:
                db.execute("INSERT INTO durable_state VALUES ('sum', ?, 1, -8929467759855775613, 0, x'0000000000000000')", (key,))
            if i % 3 != 0:
                for number in 1, 2:
                    db.execute("INSERT INTO durable_events VALUES ('sum', ?, ?, x'0001000000')", (key, number))
    for store in file, copy:
        if store is None:
            continue
        if store == copy:
            lines = file.with_suffix(".json")
            lines.write_text(run(file, "export"))
            run(copy, "import", lines)
        every = sorted([*keys, "s"], key=str.encode)
        check("all keys", run(store, "keys", "sum").splitlines(), every)
        check("a prefix", run(store, "keys", "sum", "--prefix", "b").splitlines(), ["b", "ba", "bä"])
        check("a prefix of none", run(store, "keys", "sum", "--prefix", "c"), "")
        check("behind all", run(store, "keys", "sum", "--after", "z"), "")
        check("before the prefix", run(store, "keys", "sum", "--after", "a29", "--prefix", "b").splitlines(), ["b", "ba", "bä"])
        check("behind one of the prefix", run(store, "keys", "sum", "--after", "b", "--prefix", "b").splitlines(), ["ba", "bä"])
        for size in 1, 7, len(every):
            found, after = [], []
            while page := run(store, "keys", "sum", "--count", size, *after).splitlines():
                check("the size of a page", len(page) <= size, True)
                found += page
                after = ["--after", page[-1]]
            check(f"pages of {size}", found, every)
        done = subprocess.run([TOOL, "store", store, "keys", "sum", "--count", "2"], capture_output=True, text=True, timeout=SECONDS_MAX)
        check("where the next page begins", done.stderr, "troupe: there are more keys: --after 'a01' shows the next ones\n")
        check_count = run(store, "keys", "sum", "--count", "0", status=2)
        check("a page of nothing is refused", "--count" in check_count, True)


def check_full_output(file):
    for words in ("ls",), ("export",), ("show", "Customer", "ada"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "store", file, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS_MAX)
        if done.returncode != 1 or "No space left" not in done.stderr:
            fail(f"{words} to a full disk: status {done.returncode}: {done.stderr}")


def check_other_databases(folder):
    with contextlib.closing(sqlite3.connect(folder / "other.db")) as db, db:
        db.execute("CREATE TABLE visits (page)")
    for words in ("ls",), ("export",), ("show", "A", "b"), ("dead-letters",):
        check_refused(f"{words} of another database", "no store of durable actors", folder / "other.db", *words)


@contextlib.contextmanager
def postgres():
    """The URL of a server of our own, and a function that runs SQL there; nothing where it or the library's client of it is missing."""
    if servers.postgres_programs() is None or not (BUILT / "libtroupe_durable_postgres.a").exists():
        yield None
        return
    with servers.postgres() as folder:
        yield (lambda database: f"postgresql://tester@/{database}?host={folder}"), functools.partial(servers.sql, folder)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store, lines_file, strange_file = folder / "a.db", folder / "lines.json", folder / "strange.json"
        check_named(folder / "with_names.db")
        check_pages(folder / "pages.db", None)
        shutil.copy(FIXTURE, store)
        check_shown(store)
        lines_file.write_text(run(store, "export"))
        check_copies(lines_file, folder / "b.db", folder / "c.db")
        # What an id stands for goes along with its answer.
        named_file = folder / "named.json"
        with contextlib.closing(sqlite3.connect(folder / "b.db")) as kept, kept:
            kept.execute("INSERT INTO durable_calls VALUES (?, 'deposit', -5, 1)", (b"\1" * 16,))
        named_file.write_text(run(folder / "b.db", "export"))
        check("rows of calls", named_file.read_text().count('"durable_calls"'), 1)
        run(folder / "named.db", "import", named_file)
        check("calls there and back", run(folder / "named.db", "export"), named_file.read_text())
        run(folder / "none.db", "ls", status=1)
        owner = owner_of(store)
        check_refused("an import into a store with rows", "rows already", store, "import", lines_file)
        check("the program that has the store keeps it", owner_of(store), owner)
        check_full_output(store)
        check_other_databases(folder)
        shutil.copy(FIXTURE, folder / "texts.db")
        check_strange_texts(folder / "texts.db")
        old_file = folder / "old.json"
        old_file.write_text("".join(lines_file.read_text().replace("store\",2", "store\",1").splitlines(keepends=True)[:-1]))
        run(folder / "old.db", "import", old_file)
        check("a copy of version 1", run(folder / "old.db", "export"), lines_file.read_text())
        add_strange_key(store)
        strange_file.write_text(run(store, "export"))
        run(folder / "d.db", "import", strange_file)
        check("a copy of a strange key", run(folder / "d.db", "export"), strange_file.read_text())

        with postgres() as server:
            if server is None:
                print("store: partly skipped: needs PostgreSQL: only SQLite was tested")
                return
            url, sql = server
            for database in "first", "second", "third", "pages":
                sql(f"CREATE DATABASE {database}")
            check_pages(folder / "copied.db", url("pages"))
            check_copies(lines_file, url("first"), url("second"))
            run(url("third"), "import", strange_file)
            back = folder / "back.json"
            back.write_text(run(url("third"), "export"))
            check("rows", sorted(back.read_text().splitlines()), sorted(strange_file.read_text().splitlines()))
            run(folder / "e.db", "import", back)
            check("there and back", run(folder / "e.db", "export"), strange_file.read_text())
            long_file = folder / "long.json"
            long_file.write_text(lines_file.read_text().replace('"ada"', json.dumps("k" * 2_100)))
            run(folder / "long.db", "import", long_file)
            check_refused("a key that PostgreSQL does not keep", "choose shorter keys", url("second"), "import", long_file)
            check("after it", run(url("second"), "export"), NOTHING)
            run(url("second"), "import", named_file)
            check("calls there and back", run(url("second"), "export"), named_file.read_text())
            check_refused("a database that is not there", "fourth", url("fourth"), "ls")


main()
