"""Prometheus scrapes a server's own /metrics, and those of the tool for the same program; promtool finds no fault."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

from _prometheus import SECONDS_MAX, ask, check, get, wait
from _prometheus import start as start_prometheus

TOOL, PROGRAM = sys.argv[1:3]
SKIPPED = 77
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_scrape"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER)}
CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: own
    static_configs: [{{targets: ['127.0.0.1:{own}']}}]
  - job_name: tool
    static_configs: [{{targets: ['127.0.0.1:{tool}']}}]
"""


def lint(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    check("promtool", done.returncode == 0 and not done.stdout + done.stderr, done)


def query(at, text):
    """The value for each job."""
    return {one["metric"]["job"]: float(one["value"][1]) for one in ask(at, "query", query=text)["result"]}


def scrape(started):
    def start(arguments, **more):
        started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, **more))
        return started[-1]

    program = start([PROGRAM], stdin=subprocess.PIPE)
    port = int(program.stdout.readline())
    page = start([TOOL, "page", str(program.pid), "--listen", "127.0.0.1:0"])
    url = page.stdout.readline().strip()
    for at in (f"http://127.0.0.1:{port}/", url):
        lint(get(at + "metrics"))
    check("health", get(f"http://127.0.0.1:{port}/healthz") == "ok\n", port)
    check("readiness", get(f"http://127.0.0.1:{port}/readyz") == "ready\n", port)
    check("the page", "<title>troupe</title>" in get(f"http://127.0.0.1:{port}/troupe/"), port)
    for words in (["top", program.pid, "--once"], ["dump", program.pid]):
        said = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, env=ENVIRONMENT, timeout=SECONDS_MAX, check=True).stdout
        check("the address of the page", f"\npage: http://127.0.0.1:{port}/troupe/\n" in said, said)

    at = start_prometheus(FOLDER, CONFIGURATION.format(own=port, tool=urllib.parse.urlsplit(url).port), started, env=ENVIRONMENT)
    both = {"own", "tool"}
    handled = 'troupe_handler_messages_total{class="Quick",handler="&Quick::add"}'
    wait("both are up", lambda: query(at, "up") == dict.fromkeys(both, 1.0))
    first = wait("messages", lambda: (seen := query(at, handled)).keys() == both and seen)
    wait("more messages", lambda: all(query(at, handled).get(job, 0) > first[job] for job in both))
    # Prometheus asks for OpenMetrics, which the server's own page speaks: a trace of a slow request can be found.
    found = wait("an exemplar", lambda: ask(at, "query_exemplars", query='troupe_http_request_duration_seconds_bucket{job="own"}',
                                            start=time.time() - SECONDS_MAX, end=time.time() + SECONDS_MAX))
    labels = found[0]["exemplars"][0]["labels"]
    check("a trace", re.fullmatch("[0-9a-f]{32}", labels["trace_id"]) and re.fullmatch("[0-9a-f]{16}", labels["span_id"]), found)
    check("a quantile", query(at, 'histogram_quantile(0.99, troupe_handler_duration_seconds_bucket{class="Quick"})').keys() == both, at)
    program.stdin.close()
    check("the server ends", program.wait(timeout=SECONDS_MAX) == 0, program)


def main():
    for name in "prometheus", "promtool":
        if not shutil.which(name):
            print(f"scrape: skipped: needs {name}")
            sys.exit(SKIPPED)
    started = []
    try:
        scrape(started)
    except AssertionError as wrong:
        print(f"scrape: {wrong}")
        sys.exit(1)
    finally:
        for one in reversed(started):
            one.kill()
            one.wait(timeout=SECONDS_MAX)
        shutil.rmtree(FOLDER, ignore_errors=True)
    print("scrape: all numbers came")


main()
