"""Three nodes, a NATS server and a PostgreSQL server on five machines, under faults and kills.

    faults.py PROGRAM FOLDER SECONDS [SEED]

Clients on each node read, write and swap durable registers all the time, and write down what they
did. Nodes that are killed must be replaced within a lease and a second; then faults come one after
the other; at the end all is whole again, and the history must be linearizable. What was recorded
is in FOLDER.
"""

import collections
import pathlib
import random
import shutil
import subprocess
import sys
import time

import _history
import _machines
import _programs

LEASE_S = 4
# Within a lease and a second; a machine with much else to do gets one more.
TAKEN_OVER_S = LEASE_S + 1 + 1
NODES = ("one", "two", "three")
BEHIND_PROXIES = "three"
CLIENTS = 32
OPERATIONS_MIN = 100_000
# Those of client_options.
REGISTERS = 32
PERIOD_S = 20


def fail(text):
    print(f"failed: {text}")
    sys.exit(1)


class Cluster:
    def __init__(self, program, folder, pause_ms):
        self.program, self.folder, self.pause_ms = program, folder, pause_ms
        self.begun = time.monotonic_ns()
        self.lives = 0
        self.histories = []
        network = _machines.Network()
        self.postgres = _programs.Postgres(network.machine("database"), folder)
        self.nats = _programs.Nats(network.machine("bus"), folder)
        self.machines = {name: network.machine(name) for name in NODES}
        self.servers = [self.nats.server(), self.postgres.server()]
        self.proxies = _programs.Proxies(self.machines[BEHIND_PROXIES], program, self.servers, folder / "proxies.log")
        self.nodes = {}

    def seconds(self):
        return (time.monotonic_ns() - self.begun) / 1e9

    def operations(self):
        return sum(path.read_bytes().count(b"\ne ") for path in self.histories)

    def note(self, text):
        print(f"{self.seconds():7.2f} s  {text}", flush=True)

    def start(self, name):
        self.lives += 1
        history = self.folder / f"{self.lives}.history"
        history.touch()  # it is read even if the program has not come so far
        self.histories.append(history)
        words = [name, history, self.lives, self.begun, CLIENTS, self.pause_ms, LEASE_S * 1000]
        servers = self.proxies.servers if name == BEHIND_PROXIES else self.servers
        self.nodes[name] = _programs.Node(self.machines[name], self.program, servers, words,
                                          self.folder / f"{self.lives}.log")

    def start_all(self):
        for name in NODES:
            self.start(name)
        for node in self.nodes.values():
            node.wait_for("joined")

    def settle(self):
        """Waits until each shard has an owner, and each node has its part of them."""
        status = {}

        def is_shared():
            for node in self.nodes.values():
                status[node.name] = node.status()
            return sum(shards for shards, _ in status.values()) == 1024 and all(
                members == len(NODES) and shards >= 341 for shards, members in status.values())

        try:
            _programs.wait_until(is_shared, "the shards are not shared by all nodes")
        except RuntimeError as e:
            fail(f"{e}: (shards, members) are {status}")

    def finish(self):
        for node in self.nodes.values():
            node.say("finish")
        for node in self.nodes.values():
            node.wait_for("finished", 120)
        for node in self.nodes.values():
            node.say("stop")
        for node in self.nodes.values():
            node.wait_for("stopped")
            try:
                status = node.process.wait(_programs.SECONDS_MAX)
            except subprocess.TimeoutExpired:
                fail(f"node {node.name} has stopped and does not end:\n{node.stacks()}")
            if status != 0:
                fail(f"node {node.name} ends with {status}")


# ---- take-over ----

def check_take_over(cluster, name, database=None):
    """`database`: what becomes of it at the same time; None: nothing."""
    what = f"kill node {name}" + (f" and {database} the database" if database else "")
    # The same registers are in use all the time.
    needed = TAKEN_OVER_S + (LEASE_S + 4 if database else 1)
    left = PERIOD_S - cluster.seconds() % PERIOD_S
    if left < needed:
        time.sleep(left + 0.5)  # sleeps: until others are in use
    cluster.note(what)
    cluster.nodes[name].kill()
    if database == "kill":
        cluster.postgres.kill()
        time.sleep(LEASE_S + 1)  # sleeps: all leases end
        cluster.postgres.start()
    elif database == "vanish":
        cluster.postgres.vanish()
        time.sleep(LEASE_S + 1)  # sleeps: all leases end
        cluster.postgres.come_back()
    since = time.monotonic_ns()
    period = int(cluster.seconds() / PERIOD_S)
    time.sleep(TAKEN_OVER_S + 0.5)  # sleeps: the others take over
    answered = _history.first_answers(cluster.histories, since)
    cluster.start(name)
    cluster.nodes[name].wait_for("joined")
    registers = [f"{period}.{i}" for i in range(REGISTERS)]
    if missing := [key for key in registers if key not in answered]:
        fail(f"{what}: after {TAKEN_OVER_S} s nobody has answered for the registers {missing}")
    took = (max(answered[key] for key in registers) - since) / 1e9
    cluster.note(f"all registers answer after {took:.2f} s")
    if took > TAKEN_OVER_S:
        fail(f"{what}: the last register answers after {took:.2f} s, with a lease of {LEASE_S} s")


# ---- faults ----

class Faults:
    """One fault of a process after the other, and beside every other one a fault of the network."""

    def __init__(self, cluster, chance):
        self.cluster, self.chance = cluster, chance
        self.turns = {}

    def wait(self, most):
        time.sleep(self.chance.uniform(0.2, most))  # sleeps: a fault takes its time

    def next_of(self, kinds):
        """Each once, before one comes again."""
        waiting = self.turns.setdefault(kinds, [])
        if not waiting:
            waiting.extend(self.chance.sample(kinds, len(kinds)))
        return waiting.pop()

    # Of processes, which begin and end.
    def kill_node(self, name):
        self.cluster.nodes[name].kill()
        self.wait(2 * LEASE_S)
        self.cluster.start(name)

    def kill_nats(self, _):
        self.cluster.nats.kill()
        self.wait(LEASE_S)
        self.cluster.nats.start()

    def kill_database(self, _):
        self.cluster.postgres.kill()
        self.wait(LEASE_S)
        self.cluster.postgres.start()

    def vanish_database(self, _):
        self.cluster.postgres.vanish()
        self.wait(LEASE_S)
        self.cluster.postgres.come_back()

    def pause_node(self, name):
        self.cluster.nodes[name].pause()
        self.wait(2 * LEASE_S)
        self.cluster.nodes[name].go_on()

    def leave_processes(self, _):
        self.wait(2 * LEASE_S)

    PROCESSES = ("kill_node", "kill_node", "kill_nats", "kill_database", "vanish_database", "pause_node", "leave_processes",
                 "leave_processes")

    # Of the network, which last until they are healed.
    def server(self):
        return self.chance.choice((self.cluster.nats.machine, self.cluster.postgres.machine))

    def cut_one_way_there(self, name):
        self.cluster.machines[name].drop_to(self.server())

    def cut_one_way_back(self, name):
        self.cluster.machines[name].drop_from(self.server())

    def cut_off(self, name):
        for server in (self.cluster.nats.machine, self.cluster.postgres.machine):
            self.cluster.machines[name].drop_to(server)
            self.cluster.machines[name].drop_from(server)

    def lose_packets(self, name):
        percent = self.chance.randrange(2, 40)
        server = self.server()
        self.cluster.machines[name].drop_to(server, percent)
        self.cluster.machines[name].drop_from(server, percent)

    def end_connections(self, name):
        for server in (self.cluster.nats.machine, self.cluster.postgres.machine):
            self.cluster.machines[name].end_connections_to(server)

    def delay(self, _):
        self.cluster.proxies.say(f"delay {self.chance.choice((1_000, 10_000, 100_000, 400_000))}")

    def hold(self, _):
        self.cluster.proxies.say("hold " + self.chance.choice(("1 0", "0 1", "1 1")))

    def reset(self, _):
        self.cluster.proxies.say("reset")

    NETWORK = ("cut_one_way_there", "cut_one_way_back", "cut_off", "lose_packets", "end_connections", "delay", "hold",
               "reset")

    def heal(self):
        self.cluster.proxies.heal()
        for machine in self.cluster.machines.values():
            machine.heal()

    def run(self, seconds):
        until = self.cluster.seconds() + seconds
        # A machine with much else to do takes longer for as many operations.
        at_most = until + 100
        while self.cluster.seconds() < until or (self.cluster.operations() < OPERATIONS_MIN and
                                                 self.cluster.seconds() < at_most):
            faults = [(self.next_of(self.NETWORK), self.chance.choice(NODES))] if self.chance.random() < 0.7 else []
            faults.append((self.next_of(self.PROCESSES), self.chance.choice(NODES)))
            self.cluster.note(", ".join(f"{what} {name}" for what, name in faults))
            for what, name in faults:
                getattr(self, what)(name)
            self.wait(1)
            if self.chance.random() < 0.7:
                self.heal()
            self.wait(1)
        self.heal()


# ---- the history ----

def check(program, histories):
    return subprocess.run([program, "check", *histories], capture_output=True, text=True)


def check_history(cluster):
    """That it is linearizable, and that it would not be with violations planted in it."""
    ended = collections.Counter(one.words for all in _history.read(cluster.histories).values() for one in all)
    print("operations: " + ", ".join(f"{what} {count}" for what, count in sorted(ended.items())))
    if wrong := [what for what in ended if what.startswith("wrong")]:
        fail(f"attempts ended in another way than the documentation says: {wrong}")
    done = check(cluster.program, cluster.histories)
    if done.returncode != 0:
        fail(f"the history is wrong: {done.stdout}{done.stderr}")
    print(done.stdout.strip())
    for what, key, histories in _history.planted(cluster.histories, _machines.FILES):
        found = check(cluster.program, histories)
        if found.returncode != 1 or found.stdout.count("not linearizable") != 1 or f"not linearizable: {key}:" not in found.stdout:
            fail(f"{what} of register {key} is planted, and the check says {found.stdout}{found.stderr}")


def main():
    program, folder, seconds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    if _programs.postgres_programs() is None:
        _machines.skip("needs PostgreSQL")
    if not pathlib.Path(_programs.NATS).exists():
        _machines.skip("needs nats-server")
    _machines.enter()
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cluster = Cluster(program, folder, 32 if seconds <= 600 else 150)
    cluster.start_all()
    cluster.settle()
    cluster.note("all nodes serve")
    for name, database in (("two", None), ("three", None), ("one", "kill"), ("two", "vanish")):
        check_take_over(cluster, name, database)
        cluster.settle()
    Faults(cluster, random.Random(seed)).run(seconds - cluster.seconds())
    cluster.note("calm")
    cluster.settle()
    cluster.note("all nodes serve")
    cluster.finish()
    cluster.note("finished")
    check_history(cluster)
    print(f"{cluster.seconds():.0f} s")


if __name__ == "__main__":
    main()
