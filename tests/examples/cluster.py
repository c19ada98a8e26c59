"""examples/cluster/up starts a cluster by one command, whose pages show nodes, shards and rates, and ends all of it."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/servers"))
import servers  # noqa: E402

SHOP = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "shop"
UP = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "examples/cluster/up"
OPERATE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "examples/operate"
TOOL = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "tools/troupe"
SECONDS_MAX = 120
SHARDS = 1024


def fail(text):
    print(f"cluster: {text}")
    sys.exit(1)


def check(what, holds, seen):
    if not holds:
        fail(f"{what}: {seen}")


def moments(page):
    """What the page is sent each second: of each moment, what it says of the node."""
    with urllib.request.urlopen(page + "events", timeout=SECONDS_MAX) as events:
        for line in events:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))["summary"]["runtimes"][0]["cluster"][0]


def shown_when(page, what, holds):
    until, seen = time.monotonic() + SECONDS_MAX, None
    for seen in moments(page):
        if holds(seen):
            return seen
        if time.monotonic() > until:
            break
    return fail(f"the page does not show {what}: {seen}")


def shards_of(node):
    return {one["name"]: one["shards"] for one in node["nodes"]}


def is_shared(node, count):
    shards = shards_of(node)
    part = SHARDS / count
    return len(shards) == count and sum(shards.values()) == SHARDS and all(abs(one - part) <= part / 10 for one in shards.values())


def check_pages(pages):
    for name, page in pages.items():
        seen = shown_when(page, "three nodes with a third of the shards each", lambda node: is_shared(node, 3))
        check("the node of the page", seen["node"] == name and seen["joined"] == seen["connected"] == 1 and seen["shards"] == shards_of(seen)[name], seen)
        check("nodes have names", set(shards_of(seen)) == set(pages), seen)
        check("each node's page", {one["name"]: one.get("page") for one in seen["nodes"]} == pages, seen)
        owners = seen["owners"]
        runs = list(zip(owners[::2], owners[1::2]))
        for place, one in enumerate(seen["nodes"]):
            check("the map of shards", sum(count for owner, count in runs if owner == place) == one["shards"], seen)
        # The customers of all nodes buy, so that messages go to and fro.
        shown_when(page, "messages", lambda node: all(node[key] > seen[key] for key in ("local", "sent", "served", "renewals")))


def check_metrics(page):
    with urllib.request.urlopen(page.replace("/troupe/", "/metrics"), timeout=SECONDS_MAX) as got:
        text = got.read().decode()
    for file in OPERATE.iterdir():
        for name in set(re.findall(r"\btroupe_cluster_[a-z0-9_]+", file.read_text())):
            check(f"{name} of {file.name}", re.search(rf"^{name}{{", text, re.MULTILINE), text)
    for name in "shards", "members", "sent_messages_total", "renewals_total", "connected":
        found = re.search(rf'^troupe_cluster_{name}{{runtime="0",node="node-1"}} (\d+)$', text, re.MULTILINE)
        check(name, found and int(found.group(1)) > 0, text)


def check_tool(pid):
    def tool(*words):
        return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=SECONDS_MAX).stdout

    listed = next((line for line in tool("ps").splitlines() if line.split()[0] == str(pid)), "")
    check("ps", re.search(r"shop\b.*, node node-1: \d+ shards$", listed), listed)
    top = tool("top", str(pid), "--once", "--interval", "0.2")
    check("top", re.search(r"^node node-1 of troupe: \d+ of 1024 shards, 3 nodes, \d+ actors$", top, re.MULTILINE), top)
    check("rates", re.search(r"^  [\d.k]+ here/s, [\d.k]+ sent/s, [\d.k]+ served/s, \d+ waiting, \d+ failed$", top, re.MULTILINE), top)
    dump = tool("dump", str(pid))
    check("dump", re.search(r"^ +\d+  [0-9a-f-]+ +node-1 \(this program\)$", dump, re.MULTILINE), dump)


def is_running(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children_of(pid):
    return [int(one) for one in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def main():
    if servers.lacks("cluster", "PostgreSQL", "nats-server"):
        return
    with tempfile.TemporaryDirectory() as folder:
        lock = ["--lock", pathlib.Path(folder) / "up.pid"]
        started = subprocess.Popen([UP, *lock, "--program", SHOP], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said = []
            for line in started.stdout:
                said.append(line)
                if line.startswith("up;"):
                    break
            nodes = {name: (page, int(pid)) for name, page, pid in re.findall(r"^(node-\d): (http://\S+) \(process (\d+)\)$", "".join(said), re.MULTILINE)}
            check("three nodes", list(nodes) == ["node-1", "node-2", "node-3"], said)
            children = children_of(started.pid)
            check("three servers, a database and three nodes", len(children) == 7, children)
            check("NATS has three servers", said[0].count("nats://") == 3, said)
            pages = {name: page for name, (page, _) in nodes.items()}
            check_pages(pages)
            check_metrics(pages["node-1"])
            if TOOL.exists():
                check_tool(nodes["node-1"][1])
            again = subprocess.run([UP, *lock, "--program", SHOP], capture_output=True, text=True, timeout=SECONDS_MAX)
            check("a second one is refused", again.returncode == 1 and "up already" in again.stderr, again)
            os.kill(nodes["node-3"][1], signal.SIGKILL)
            shown_when(pages["node-1"], "that one has ended", lambda node: is_shared(node, 2))
            down = subprocess.run([UP, *lock, "--down"], capture_output=True, text=True, timeout=SECONDS_MAX)
            check("down", down.returncode == 0 and down.stdout == "down\n", down)
            check("it ends well", started.wait(timeout=SECONDS_MAX) == 0, started.stdout.read())
            check("nothing is left", not any(map(is_running, children)), children)
            logs = re.search(r"^logs: (.*)$", "".join(said), re.MULTILINE).group(1)
            check("no file is left", not os.path.exists(logs), logs)
        finally:
            started.terminate()
            started.wait(timeout=SECONDS_MAX)


main()
