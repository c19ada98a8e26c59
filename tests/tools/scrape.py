"""Prometheus scrapes a server's own /metrics, and those of the tool for the same program; promtool finds no fault."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

TOOL, PROGRAM = sys.argv[1:3]
SKIPPED = 77
SECONDS_MAX = 60
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


def check(what, holds, seen):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def get(url):
    with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
        return answer.read().decode()


def lint(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    check("promtool", done.returncode == 0 and not done.stdout + done.stderr, done)


def listening(lines):
    """The address at which Prometheus says that it listens; it goes on to say much, which is read away."""
    said = []
    for line in lines:
        said.append(line)
        if found := re.search(r'msg="Listening on" address=(\S+)', line):
            threading.Thread(target=lambda: list(lines), daemon=True).start()
            return f"http://{found.group(1)}"
    raise AssertionError("prometheus does not listen:\n" + "".join(said))


def is_ready(at):
    try:
        return "Ready" in get(f"{at}/-/ready")
    except urllib.error.HTTPError:  # it reads its files
        return False


def query(at, text):
    """The value for each job."""
    answer = json.loads(get(f"{at}/api/v1/query?" + urllib.parse.urlencode({"query": text})))
    return {one["metric"]["job"]: float(one["value"][1]) for one in answer["data"]["result"]}


def wait(what, holds):
    deadline = time.monotonic() + SECONDS_MAX
    while not (seen := holds()):
        check(f"{what} is not seen", time.monotonic() < deadline, seen)
        time.sleep(0.1)  # sleeps: Prometheus tells nobody when it has scraped
    return seen


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

    file = FOLDER / "prometheus.yml"
    file.write_text(CONFIGURATION.format(own=port, tool=urllib.parse.urlsplit(url).port))
    database = start(["prometheus", f"--config.file={file}", f"--storage.tsdb.path={FOLDER}/data", "--web.listen-address=127.0.0.1:0"],
                     stderr=subprocess.STDOUT)
    at = listening(database.stdout)
    both = {"own", "tool"}
    handled = 'troupe_handler_messages_total{class="Quick",handler="&Quick::add"}'
    wait("a database that is ready", lambda: is_ready(at))
    wait("both are up", lambda: query(at, "up") == dict.fromkeys(both, 1.0))
    first = wait("messages", lambda: (seen := query(at, handled)).keys() == both and seen)
    wait("more messages", lambda: all(query(at, handled).get(job, 0) > first[job] for job in both))
    check("a quantile", query(at, 'troupe_handler_duration_seconds{class="Quick",quantile="0.99"}').keys() == both, at)
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
