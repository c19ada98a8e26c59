"""What runs on the machines of a test: PostgreSQL, nats-server, and nodes."""

import contextlib
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import threading
import time

from _machines import FILES, run

SECONDS_MAX = 60
NATS = "/usr/sbin/nats-server"
GDB_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/gdb/troupe_gdb.py"


def postgres_programs():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def wait_until(holds, what, seconds=SECONDS_MAX):
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise RuntimeError(f"after {seconds} s: {what}")
        time.sleep(0.05)  # sleeps: another process makes it so


class Postgres:
    USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def __init__(self, machine, logs):
        self.machine, self.programs = machine, postgres_programs()
        self.folder = FILES / "postgres"
        self.log = open(logs / "postgres.log", "w")
        self.folder.mkdir()
        shutil.chown(self.folder, "postgres", "postgres")
        run(*self.USER, self.programs / "initdb", "-D", "data", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8",
            "--locale=C", cwd=self.folder)
        with open(self.folder / "data/pg_hba.conf", "a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
        self.start()

    def server(self):
        return f"{self.machine.address}:5432"

    def start(self):
        def serves():
            if self.process is None or self.process.poll() is not None:
                # Also again, when processes of one that was killed have not ended yet.
                self.process = self.machine.start(
                    *self.USER, self.programs / "postgres", "-D", "data", "-k", self.folder, "-c",
                    f"listen_addresses={self.machine.address}", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c",
                    "min_wal_size=32MB", "-c", "max_wal_size=64MB", "-c", "max_connections=60", cwd=self.folder,
                    stdout=self.log, stderr=self.log)
            return subprocess.run(self.machine.inside(self.programs / "pg_isready", "-q", "-h", self.machine.address),
                                  cwd=self.folder).returncode == 0

        self.process = None
        wait_until(serves, "PostgreSQL does not start")
        self.reap_orphans()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def reap_orphans(self):
        """Takes the ends of what killed servers have left: these processes are this one's, the first of its machine."""
        for line in run("ps", "-o", "pid=,stat=,comm=", "--ppid", os.getpid()).splitlines():
            process, state, name = line.split(None, 2)
            if name.startswith("postgres") and state.startswith("Z") and int(process) != self.process.pid:
                os.waitpid(int(process), 0)

    def vanish(self):
        """As its machine does without power: what it has taken it does not answer, and nobody is told of its end."""
        os.kill(self.process.pid, signal.SIGSTOP)
        children = run("ps", "-o", "pid=", "--ppid", self.process.pid).split()
        for process in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        time.sleep(0.3)  # sleeps: requests come to the machine
        self.machine.cut_off()
        for process in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.kill()

    def come_back(self):
        self.start()
        self.machine.heal()


class Nats:
    def __init__(self, machine, logs):
        self.machine, self.log = machine, open(logs / "nats.log", "w")
        self.start()

    def server(self):
        return f"{self.machine.address}:4222"

    def start(self):
        self.process = self.machine.start(NATS, "-a", self.machine.address, "-p", "4222", stdout=self.log, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Program:
    """One that is told what to do by lines, and answers with lines."""

    def __init__(self, machine, words, log):
        self.machine, self.name = machine, machine.name
        self.log = open(log, "w")
        self.process = machine.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def wait_for(self, word, seconds=SECONDS_MAX):
        """The rest of the next line that begins with the word."""
        until = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                raise RuntimeError(f"{self.name} does not say `{word}` within {seconds} s") from None
            if line is None:
                raise RuntimeError(f"{self.name} ends with {self.process.wait()}; see {self.log.name}")
            if line.split()[0] == word:
                return line.removeprefix(word).strip()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


class Proxies(Program):
    """Between the node of a machine and its servers."""

    def __init__(self, machine, program, servers, log):
        super().__init__(machine, [program, "proxy", *servers], log)
        self.servers = [f"127.0.0.1:{port}" for port in self.wait_for("ports").split()]

    def heal(self):
        self.say("hold 0 0")
        self.say("delay 0")


class Node(Program):
    """One life of a node; `words` are those of node.cpp."""

    def __init__(self, machine, program, servers, words, log):
        (host, port), bus = servers[1].split(":"), servers[0]
        database = f"host={host} port={port} user=tester dbname=postgres"
        super().__init__(machine, [program, "serve", f"nats://{bus}", database, *words], log)

    def status(self):
        """(its shards, the members it knows)"""
        self.say("status")
        shards, members = self.wait_for("status").split()
        return int(shards), int(members)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stacks(self):
        """What each thread does and what the calls wait for, where gdb is there to say it."""
        commands = (f"source {GDB_SCRIPT}", "info troupe", "info troupe waits", "thread apply all backtrace")
        words = [word for one in commands for word in ("-ex", one)]
        try:
            return subprocess.run(["gdb", "-p", str(self.process.pid), "-batch", *words],
                                  capture_output=True, text=True, timeout=SECONDS_MAX).stdout
        except (OSError, subprocess.TimeoutExpired) as e:
            return str(e)

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)
