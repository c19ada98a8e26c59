"""10,000 requests through two programs are 10,000 trees; and a collector that never answers harms nobody.

Each request goes HTTP -> ask -> ask -> HTTP to a second process. This is the collector of both."""

import collections
import http.server
import json
import resource
import socket
import subprocess
import sys
import threading
import time

PROGRAM = sys.argv[1]
REQUESTS = 10_000
SECONDS_MAX = 240
SECRET = b"hunter2"
# From the root on: the kind, the name, and whose it is.
CHAIN = [(3, "GET", "shop"), (2, "GET /buy/{key}", "shop"), (1, "Shop::buy", "shop"), (1, "Stock::count", "shop"),
         (3, "GET", "shop"), (2, "GET /stock/{key}", "warehouse")]


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}: {seen}")


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies = []

    def do_POST(self):
        check("the request", self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json", self.path)
        Collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def collect():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/v1/traces"


def text_of(value):
    (kind, text), = value.items()
    return int(text) if kind == "intValue" else text


def spans_in(bodies):
    for body in bodies:
        check("no secret is exported", SECRET not in body, body[:2000])
        for part in json.loads(body)["resourceSpans"]:
            resource_ = {one["key"]: text_of(one["value"]) for one in part["resource"]["attributes"]}
            for scope in part["scopeSpans"]:
                for span in scope["spans"]:
                    span["service"] = resource_["service.name"]
                    span["attributes"] = {one["key"]: text_of(one["value"]) for one in span["attributes"]}
                    yield span


def check_tree(trace, spans):
    by_id = {one["spanId"]: one for one in spans}
    check("each span has a number of its own", len(by_id) == len(spans), trace)
    children = collections.defaultdict(list)
    for one in spans:
        parent = one.get("parentSpanId", "")
        check("no span is an orphan", parent == "" or parent in by_id, one)
        children[parent].append(one)
    above = ""
    for kind, name, service in CHAIN:
        check("one span at each step", len(children[above]) == 1, children[above])
        span = children[above][0]
        check("the span", (span["kind"], span["name"].split("::", 1)[-1] if kind == 1 and "anonymous" in span["name"]
                           else span["name"], span["service"]) == (kind, name, service), span)
        check("its status", span["status"] == {}, span)
        check("its times", int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), span)
        if kind == 2:
            check("its attributes", span["attributes"]["http.response.status_code"] == 200
                  and span["attributes"]["http.route"] in span["name"], span)
        if kind == 1:
            check("its class", name.split("::")[0] in span["attributes"]["troupe.actor.class"], span)
        above = span["spanId"]
    check("nothing else", len(spans) == len(CHAIN), spans)


def numbers_of(said):
    return {name: int(number) for name, number in (line.split() for line in said.split("\n") if line)}


def run_both(url, requests, most):
    """What the shop and the warehouse say."""
    back = subprocess.Popen([PROGRAM, "back", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(back.stdout.readline())
        front = subprocess.run([PROGRAM, "front", url, f"http://127.0.0.1:{port}", str(requests), str(most)],
                               stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX, check=True)
        said, _ = back.communicate(timeout=SECONDS_MAX)
        check("the warehouse ends", back.returncode == 0, back.returncode)
    finally:
        back.kill()
        back.wait()
    return numbers_of(front.stdout), numbers_of(said)


def check_trees():
    server, url = collect()
    shop, warehouse = run_both(url, REQUESTS, 200_000)
    server.shutdown()
    for one in (shop, warehouse):
        check("nothing is dropped", (one["dropped"], one["rejected"], one["waiting"]) == (0, 0, 0), one)
    traces = collections.defaultdict(list)
    for span in spans_in(Collector.bodies):
        traces[span["traceId"]].append(span)
    check("one trace for each request", len(traces) == REQUESTS, len(traces))
    for trace, spans in traces.items():
        check_tree(trace, spans)
    check("all are counted", shop["exported"] + warehouse["exported"] == REQUESTS * len(CHAIN), (shop, warehouse))
    print(f"{len(traces)} trees of {len(CHAIN)} spans in {len(Collector.bodies)} requests; {shop['milliseconds']} ms")


class Silent:
    """Takes connections, and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.held = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            self.held.append(self.listener.accept()[0])


def check_silence():
    silent = Silent()
    url = f"http://127.0.0.1:{silent.listener.getsockname()[1]}/v1/traces"
    requests, most = 3000, 2000
    began = time.monotonic()
    back = subprocess.Popen([PROGRAM, "back", "http://127.0.0.1:1/v1/traces"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(back.stdout.readline())
        front = subprocess.run([PROGRAM, "front", url, f"http://127.0.0.1:{port}", str(requests), str(most)],
                               stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX, check=False)
    finally:
        back.kill()
        back.wait()
    check("the shop answers all the same", front.returncode == 0, front.returncode)
    shop = numbers_of(front.stdout)
    made = requests * (len(CHAIN) - 1)
    check("what finds no space is dropped", shop["exported"] == 0 and shop["waiting"] <= most
          and shop["dropped"] + shop["waiting"] == made, shop)
    check("it ends soon", time.monotonic() - began < 120, time.monotonic() - began)
    print(f"silent collector: {shop}")


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    check_trees()
    check_silence()


main()
