"""A rolling restart from an old version of a program to a new one, which has more methods and classes.

    skew.py OLD NEW FOLDER

While nodes are replaced one by one, clients on each node ask methods that both versions have: none
of these asks may fail. What only the new version has, or has with another signature, an old node
refuses at once, and a new one answers.
"""

import collections
import pathlib
import shutil
import sys
import time

import _machines
import _programs
from _programs import Program

NODES = ("one", "two")
# How each ask of the new version may end; the second is what an old node says.
ENDS = {
    "twice": "unknown_method: troupe: cluster: the other node's class Counter has no method twice",
    "scale": "unknown_method: troupe: cluster: here the method Counter::scale is ",
    "one": "unknown_method: troupe: cluster: the other node has no class Added",
    "balance": "durable::unknown_method: ",
}


def fail(text):
    print(f"failed: {text}")
    sys.exit(1)


class Rolling:
    def __init__(self, folder):
        self.folder, self.lives = folder, 0
        network = _machines.Network()
        self.postgres = _programs.Postgres(network.machine("database"), folder)
        self.nats = _programs.Nats(network.machine("bus"), folder)
        self.machines = {name: network.machine(name) for name in NODES}
        self.nodes = {}
        self.answered = 0

    def start(self, name, program):
        self.lives += 1
        database = f"host={self.postgres.machine.address} user=tester dbname=postgres"
        words = [program, f"nats://{self.nats.server()}", database, name]
        self.nodes[name] = Program(self.machines[name], words, self.folder / f"{self.lives}.log")

    def settle(self, count):
        def is_shared():
            found = []
            for node in self.nodes.values():
                node.say("status")
                found.append([int(word) for word in node.wait_for("status").split()])
            return sum(shards for shards, _ in found) == 1024 and all(members == count for _, members in found)

        _programs.wait_until(is_shared, "the shards are not shared by all nodes")

    def finish(self, name, word="finish"):
        self.nodes[name].say(word)
        answered, failed, first = self.nodes[name].wait_for("finished").split(maxsplit=2)
        self.answered += int(answered)
        if failed != "0":
            fail(f"on node {name} {answered} asks were answered, and {failed} failed, the first with: {first}")

    def stop(self, name):
        self.finish(name, "stop")
        node = self.nodes.pop(name)
        node.wait_for("stopped")
        if node.process.wait(_programs.SECONDS_MAX) != 0:
            fail(f"node {name} ends with {node.process.returncode}")

    def ask_new(self, name):
        """How often each kind of ask was answered, and was refused."""
        ended = collections.Counter()
        self.nodes[name].say("new")
        while (line := self.nodes[name].wait_for("asked")) != "all":
            what, how = line.split(": ", 1)
            if how != "answered" and not how.startswith(ENDS[what]):
                fail(f"an ask of {what} ends with {how}")
            # Of one that both have, both signatures are told.
            if what == "scale" and how != "answered" and ("(f8)->text" not in how or "(i8)->i8" not in how):
                fail(f"both signatures are not told: {how}")
            ended[what, how == "answered"] += 1
        return ended


def main():
    old, new, folder = (pathlib.Path(word) for word in sys.argv[1:4])
    if _programs.postgres_programs() is None:
        _machines.skip("needs PostgreSQL")
    if not pathlib.Path(_programs.NATS).exists():
        _machines.skip("needs nats-server")
    _machines.enter()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    all = Rolling(folder)
    for name in NODES:
        all.start(name, old)
    for node in all.nodes.values():
        node.wait_for("joined")
    all.settle(2)
    for count, name in enumerate(NODES, 1):
        time.sleep(2)  # sleeps: clients ask meanwhile
        all.stop(name)
        all.start(name, new)
        all.nodes[name].wait_for("joined")
        all.settle(2)
        ended = all.ask_new(name)
        print({f"{what} {'answered' if well else 'refused'}": n for (what, well), n in sorted(ended.items())})
        refused = {what for what, well in ended if not well}
        if refused != (set(ENDS) if count < len(NODES) else set()):
            fail(f"with {count} new nodes of {len(NODES)} refused are: {refused}")
    time.sleep(2)  # sleeps: clients ask meanwhile
    for name in NODES:
        all.finish(name)
    all.nodes["one"].say("sum")
    if (found := int(all.nodes["one"].wait_for("sum"))) != all.answered:
        fail(f"{all.answered} deposits were answered, and the accounts hold {found}")
    if all.answered < 1000:
        fail(f"only {all.answered} asks were answered")
    for name in NODES:
        all.stop(name)
    print(f"{all.answered} asks of each kind were answered, and none failed")


if __name__ == "__main__":
    main()
