"""Machines of a test: network namespaces, joined by a bridge, that end with the test whatever ends it.

The test runs itself again in namespaces of its own, for processes, mounts and networks. When its
process ends, the kernel ends all that it has started, and removes networks and files.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

INSIDE = "TROUPE_INSIDE_NAMESPACES"
SKIPPED = 77
# Hidden by an empty file system of our own: sockets, names of networks, shared memory, databases.
HIDDEN = ("/run", "/dev/shm", "/mnt")
FILES = pathlib.Path("/mnt")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} ends with {done.returncode}: {done.stderr}")
    return done.stdout


def enter():
    """Returns inside; outside it ends with the status of what runs inside."""
    if os.environ.get(INSIDE):
        run("mount", "--make-rprivate", "/")
        for folder in HIDDEN:
            run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
        os.chmod("/dev/shm", 0o1777)
        return
    if os.getuid() != 0:
        skip("needs root: it makes network namespaces")
    for program in ("unshare", "nsenter", "setpriv", "ip", "nft", "ss", "ps"):
        if shutil.which(program) is None:
            skip(f"needs nftables and iproute2: there is no {program}")
    namespaces = ["unshare", "--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
    trial = subprocess.run([*namespaces, "sh", "-c", "ip link add trial type bridge && nft add table inet trial"],
                           capture_output=True, text=True)
    if trial.returncode != 0:
        skip(f"needs network namespaces: {trial.stderr.strip()}")
    # Whatever ends this process ends that one, with all that it has started.
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *namespaces, sys.executable, *sys.argv],
                               env={**os.environ, INSIDE: "1"})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        status = process.wait()
    finally:
        process.kill()
    sys.exit(status)


class Network:
    """The bridge that joins the machines."""

    def __init__(self):
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "link", "set", "bridge", "up")
        self.count = 0

    def machine(self, name):
        self.count += 1
        return Machine(name, f"10.77.0.{self.count}")


class Machine:
    def __init__(self, name, address):
        self.name, self.address = name, address
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"to-{name}", "master", "bridge", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        self.heal()

    def inside(self, *words):
        return ["nsenter", f"--net=/run/netns/{self.name}", "--", *map(str, words)]

    def start(self, *words, **options):
        return subprocess.Popen(self.inside(*words), **options)

    def heal(self):
        """Everything passes."""
        rules = "\n".join(("flush ruleset", "table inet faults {",
                           "chain input { type filter hook input priority 0; }",
                           "chain output { type filter hook output priority 0; }", "}"))
        run(*self.inside("nft", "-f", "-"), input=rules)

    def cut_off(self):
        """Nothing comes, and nothing goes but to itself."""
        for chain, which in (("input", 'iifname "eth0"'), ("output", 'oifname "eth0"')):
            self._drop(chain, which, 100)

    def drop_to(self, other, percent=100):
        self._drop("output", f"ip daddr {other.address}", percent)

    def drop_from(self, other, percent=100):
        self._drop("input", f"ip saddr {other.address}", percent)

    def _drop(self, chain, which, percent):
        chance = "" if percent == 100 else f" numgen random mod 100 < {percent}"
        run(*self.inside("nft", "-f", "-"), input=f"add rule inet faults {chain} {which}{chance} drop")

    def end_connections_to(self, other):
        run(*self.inside("ss", "-K", "dst", other.address))
