"""The alert rules and the dashboard of examples/operate fit the metrics that a program has in fact."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from _prometheus import SECONDS_MAX, ask, check, get, start, wait

PROGRAM = sys.argv[1]
OPERATE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "examples/operate"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_operate"))
# Their samples need servers: tests/examples/cluster.py looks for them. The guide lists their names, as they are declared
# (declared.py).
ELSEWHERE = "troupe_cluster_"
GUIDE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "docs/guide/metrics.md"
CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: ['{rules}']
scrape_configs:
  - job_name: troupe
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""


def dashboard():
    """Its queries, by the titles of their panels."""
    panels = json.loads((OPERATE / "dashboard.json").read_text())["panels"]
    return [(one["title"], target["expr"]) for one in panels for target in one.get("targets", [])]


def names_in(text):
    return set(re.findall(r"\btroupe_[a-z0-9_]+", text))


def check_names(metrics):
    samples = set(re.findall(r"^(troupe_[a-z0-9_]+)[{ ]", metrics, re.M))
    families = set(re.findall(r"^\| `(troupe_\w+)` \|", GUIDE.read_text(), re.M))
    rules = (OPERATE / "alerts.yml").read_text()
    variables = json.dumps(json.loads((OPERATE / "dashboard.json").read_text())["templating"])
    for where, text in (("alerts.yml", rules), *dashboard(), ("the variables of the dashboard", variables)):
        for name in names_in(text):
            check(f"{where}: there is a metric {name}", name in (families if name.startswith(ELSEWHERE) else samples), sorted(samples))
    kinds = set(re.findall(r'^troupe_warnings_total{runtime="0",kind="([a-z_]+)"} ', metrics, re.M))
    alerts = {kind for group in re.findall(r'troupe_warnings_total{kind=~"([^"]*)"}', rules) for kind in group.split("|")}
    check("each kind of warning has an alert, and no other", kinds == alerts, kinds ^ alerts)


def check_rules():
    for words in ("check rules alerts.yml", "test rules alerts.test.yml", "check config prometheus.yml"):
        done = subprocess.run(["promtool", *words.split()], cwd=OPERATE, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        check(f"promtool {words}", done.returncode == 0, done.stdout + done.stderr)
    names = re.findall(r"- alert: (\w+)", (OPERATE / "alerts.yml").read_text())
    tests = (OPERATE / "alerts.test.yml").read_text()
    check("each alert is tested", all(f'"{name}"' in tests or f"alertname: {name}" in tests for name in names), names)


def check_in_prometheus(port, started):
    """Each query of the dashboard has a result, and each rule can be evaluated."""
    at = start(FOLDER, CONFIGURATION.format(rules=OPERATE / "alerts.yml", port=port), started)
    for title, expression in dashboard():
        text = expression.replace("$__rate_interval", "10s").replace("$job", "troupe").replace("$instance", ".*")
        found = ask(at, "query", query=text)
        if ELSEWHERE not in text:
            wait(f"a result of {title}: {text}", lambda text=text: ask(at, "query", query=text)["result"])
        check(f"{title} is a list of series", found["resultType"] == "vector", found)
    rules = wait("rules that were evaluated", lambda: (seen := [one for group in ask(at, "rules")["groups"] for one in group["rules"]])
                 and all(one["health"] != "unknown" for one in seen) and seen)
    check("each rule can be evaluated", all(one["health"] == "ok" for one in rules), rules)
    check("a program that is well alerts nobody", not [one for one in rules if one["state"] == "firing"], rules)


def main():
    started = []
    program = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started.append(program)
    try:
        port = int(program.stdout.readline())
        metrics = f"http://127.0.0.1:{port}/metrics"
        # Each is seen from its first event on, and answers of one second are the same.
        for first in ("troupe_durable_commit_seconds_count", "troupe_http_request_duration_seconds_count"):
            wait(first, lambda first=first: re.search(rf"^{first}{{[^}}]*}} [1-9]", get(metrics), re.M))
        check_names(get(metrics))
        if shutil.which("promtool") and shutil.which("prometheus"):
            check_rules()
            check_in_prometheus(port, started)
        else:
            print("operate: partly skipped: needs prometheus: the names alone were checked")
        program.stdin.close()
        check("the server ends", program.wait(timeout=SECONDS_MAX) == 0)
        print("operate: all rules and queries fit")
    except AssertionError as wrong:
        print(f"operate: {wrong}")
        sys.exit(1)
    finally:
        for one in reversed(started):
            one.kill()
            one.wait(timeout=SECONDS_MAX)
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
