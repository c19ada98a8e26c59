"""A Prometheus that scrapes programs of tests."""

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

SECONDS_MAX = 60


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def get(url):
    with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
        return answer.read().decode()


def wait(what, holds):
    deadline = time.monotonic() + SECONDS_MAX
    while not (seen := holds()):
        check(f"{what} is not seen", time.monotonic() < deadline, seen)
        time.sleep(0.1)  # sleeps: Prometheus tells nobody when it has scraped
    return seen


def ask(at, what, **fields):
    """The `data` of an answer of its API."""
    try:
        answer = json.loads(get(f"{at}/api/v1/{what}?" + urllib.parse.urlencode(fields)))
    except urllib.error.HTTPError as refused:
        raise AssertionError(f"{fields} is refused:\n{refused.read().decode()}") from refused
    check(f"{fields} is answered", answer["status"] == "success", answer)
    return answer["data"]


def start(folder, configuration, started, **more):
    """Its address, once it is ready. The process is added to `started`."""
    file = folder / "prometheus.yml"
    file.write_text(configuration)
    process = subprocess.Popen(["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0",
                                "--enable-feature=exemplar-storage"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    started.append(process)
    at = _listening(process.stdout)
    wait("a database that is ready", lambda: _is_ready(at))
    return at


def _listening(lines):
    """The address at which Prometheus says that it listens; it goes on to say much, which is read away."""
    said = []
    for line in lines:
        said.append(line)
        if found := re.search(r'msg="Listening on" address=(\S+)', line):
            threading.Thread(target=lambda: list(lines), daemon=True).start()
            return f"http://{found.group(1)}"
    raise AssertionError("prometheus does not listen:\n" + "".join(said))


def _is_ready(at):
    try:
        return "Ready" in get(f"{at}/-/ready")
    except urllib.error.HTTPError:  # it reads its files
        return False
