"""ledger is killed again and again while clients transfer money: what was acknowledged is there, each id has its effect
once, and no money comes or goes."""

import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/servers"))
import servers  # noqa: E402

LEDGER = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "ledger"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "ledger_check"
DATABASE = FOLDER / "ledger.db"
KILLS = 1000 if os.environ.get("TROUPE_DEEP") else 20
SECONDS_MAX = 60
ACCOUNTS = 8
OPENING = 100_000
CLIENTS = 4


def fail(text):
    print(f"ledger: {text}")
    os._exit(1)


class Program:
    """The ledger, which comes back on the same port."""

    def __init__(self, database):
        self.database = database
        self.port = 0
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen([LEDGER, "--database", self.database, "--port", str(self.port)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            fail(f"it says {line!r}, status {self.process.poll()}")
        self.port = int(line.rsplit(":", 1)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            if self.process.wait(SECONDS_MAX) != 0:
                fail(f"it ended with {self.process.returncode}")
        except subprocess.TimeoutExpired:
            fail("it does not end")
        self.process.stdout.close()


def ask(program, method, path, body=None, key=None):
    """The status and the answer; (None, None) if there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=SECONDS_MAX)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if answer.status == 200 else text
    except (OSError, http.client.HTTPException):
        return None, None
    finally:
        connection.close()


def until_answered(program, method, path, body=None, key=None):
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        status, answer = ask(program, method, path, body, key)
        if status is not None and status != 503:
            return status, answer
        time.sleep(0.01)  # sleeps: the program is being started
    fail(f"no answer to {method} {path}")


def client(number, program, done, acknowledged):
    chance = random.Random(number)
    made = 0
    while not done.is_set():
        made += 1
        key = f"{number}.{made}"
        sender, receiver = chance.sample(range(ACCOUNTS), 2)
        cents = chance.randrange(1, 500)
        body = {"from": f"account {sender}", "to": f"account {receiver}", "cents": cents}
        status, answer = until_answered(program, "POST", "/transfers", body, key)
        if status == 200:
            acknowledged.append((key, sender, receiver, cents))
        elif status != 409:
            fail(f"transfer {key}: {status} {answer}")


def check(program, acknowledged):
    entries = {}
    total = 0
    for number in range(ACCOUNTS):
        path = f"/accounts/account%20{number}"
        _, balance = until_answered(program, "GET", path)
        _, all_entries = until_answered(program, "GET", path + "/entries")
        if balance["cents"] != sum(one["cents"] for one in all_entries):
            fail(f"account {number}: {balance} is not the sum of its entries")
        total += balance["cents"]
        for one in all_entries:
            entries.setdefault(one["id"], []).append((number, one["cents"]))
    if total != ACCOUNTS * OPENING:
        fail(f"there are {total} cents, not {ACCOUNTS * OPENING}")
    for key, sender, receiver, cents in acknowledged:
        if sorted(entries.get(key, [])) != sorted([(sender, -cents), (receiver, cents)]):
            fail(f"transfer {key} of {cents} from {sender} to {receiver}: {entries.get(key)}")
    for key, parts in entries.items():
        if not key.startswith("open") and (len(parts) != 2 or sum(cents for _, cents in parts) != 0):
            fail(f"transfer {key}: {parts}")


def in_file():
    database = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)
    left = database.execute("SELECT count(*) FROM durable_inbox").fetchone()[0]
    database.close()
    return left


def rest(left):
    """Waits until no message is left in the inbox."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        if left() == 0:
            return
        time.sleep(0.01)  # sleeps: what it waits for comes from another process
    fail("messages are left in the inbox")


def check_refusals(program):
    for body, key, wanted in (({"from": "a", "to": "b", "cents": 5}, None, 400), ({"from": "a", "to": "a", "cents": 5}, "x", 400),
                              ({"from": "a", "to": "b", "cents": -5}, "x", 400), ({"from": "a", "to": "b", "cents": 5}, "x", 409)):
        status, answer = ask(program, "POST", "/transfers", body, key)
        if status != wanted:
            fail(f"{body} with key {key}: {status} {answer}, not {wanted}")


def run(what, target, left):
    program = Program(target)
    check_refusals(program)
    for number in range(ACCOUNTS):
        for _ in range(2):  # the second time changes nothing
            status, answer = until_answered(program, "POST", f"/accounts/account%20{number}/deposits", {"cents": OPENING}, f"open {number}")
            if status != 200 or answer["cents"] != OPENING:
                fail(f"deposit: {status} {answer}")
    done = threading.Event()
    acknowledged = []
    clients = [threading.Thread(target=client, args=(number, program, done, acknowledged)) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    chance = random.Random(1)
    for _ in range(KILLS):
        before = len(acknowledged)
        until = time.monotonic() + SECONDS_MAX
        while len(acknowledged) <= before and time.monotonic() < until:
            time.sleep(0.001)  # sleeps: what it waits for comes from other threads
        time.sleep(chance.uniform(0, 0.05))  # sleeps: the kill comes at any moment
        program.kill()
        program.start()
    done.set()
    for one in clients:
        one.join()
    if len(acknowledged) < KILLS:
        fail(f"only {len(acknowledged)} transfers were acknowledged")
    rest(left)
    check(program, acknowledged)
    program.end()
    print(f"{what}: {len(acknowledged)} transfers beside {KILLS} kills")


def run_on_postgres():
    """The same on PostgreSQL, where it and the library's client of it are here."""
    programs = servers.postgres_programs()
    if servers.lacks("ledger", "PostgreSQL", component="durable_postgres"):
        return
    with servers.postgres() as folder:
        asks = [programs / "psql", "-h", folder, "-U", "tester", "-d", "postgres", "-At", "-c"]

        def left():
            done = subprocess.run([*asks, "SELECT count(*) FROM durable_inbox"], capture_output=True, text=True)
            return int(done.stdout) if done.returncode == 0 else None

        run("PostgreSQL", "postgresql://tester@/postgres?host=" + folder, left)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    run("SQLite", DATABASE, in_file)
    shutil.rmtree(FOLDER)
    run_on_postgres()


main()
