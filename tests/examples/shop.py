"""shop alone, and on several nodes: orders go on while nodes are killed and stopped, and each ends."""

import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/servers"))
import servers  # noqa: E402

SHOP = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "shop"
SECONDS_MAX = 120
ENDS = {"done", "lost", "timed out", "unreachable"}


def fail(text):
    print(f"shop: {text}")
    sys.exit(1)


def orders(text):
    """How many orders have ended in which way."""
    return {end: int(count) for end, count in re.findall(r"^orders (.+): (\d+)$", text, re.MULTILINE)}


def check_alone():
    done = subprocess.run([SHOP, "--customers", "5"], capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode != 0 or set(orders(done.stdout)) != {"done"} or "shards here: 1024" not in done.stdout:
        fail(f"alone it says {done.stdout} {done.stderr}")
    wrong = subprocess.run([SHOP, "--customers", "0"], capture_output=True, text=True, timeout=SECONDS_MAX)
    if wrong.returncode != 2 or "takes a number" not in wrong.stderr:
        fail(f"a wrong option ends with {wrong.returncode}: {wrong.stderr}")
    half = subprocess.run([SHOP, "--nats", "nats://127.0.0.1:1"], capture_output=True, text=True, timeout=SECONDS_MAX)
    if half.returncode != 1 or "needs both" not in half.stderr:
        fail(f"without a database it ends with {half.returncode}: {half.stderr}")


class Node:
    def __init__(self, *options):
        self.process = subprocess.Popen([SHOP, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not self.process.stdout.readline().startswith("joined as"):
            fail("a node does not join")


def check_cluster(common):
    serving = [Node(*common, "--serve", "--name", f"server {i}") for i in range(3)]
    buyer = Node(*common, "--seconds", "12")
    serving[0].process.send_signal(signal.SIGTERM)
    text, _ = serving[0].process.communicate(timeout=SECONDS_MAX)
    if "handed over" not in text or serving[0].process.returncode != 0:
        fail(f"a node that is stopped says {text}")
    serving[1].process.kill()
    serving[1].process.wait()
    text, _ = buyer.process.communicate(timeout=SECONDS_MAX)
    ended = orders(text)
    if buyer.process.returncode != 0 or not set(ended) <= ENDS or ended.get("done", 0) < 100:
        fail(f"the buyer ends with {buyer.process.returncode}: {text}")
    shards = int(re.search(r"shards here: (\d+)", text).group(1))
    if "nodes: 2" not in text or not 461 <= shards <= 563:
        fail(f"the shards are not shared by the two that are left: {text}")
    serving[2].process.send_signal(signal.SIGTERM)
    serving[2].process.communicate(timeout=SECONDS_MAX)


def main():
    check_alone()
    if servers.lacks("shop", "PostgreSQL", "nats-server"):
        return
    with servers.nats() as address, servers.postgres() as folder:
        check_cluster(["--nats", address, "--database", f"host={folder} user=tester dbname=postgres"])


main()
