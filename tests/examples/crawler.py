"""crawler against generated folders, whose report is made here, and against a server of ours that fails, is slow,
closes connections and has pages without end."""

import http.server
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

CRAWLER = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "crawler"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "crawler_check"
SECONDS_MAX = 100
ENVIRONMENTS = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "8"}, {"TROUPE_IO": "epoll"},
                {"TROUPE_POLICY": "shared_queue"}, {"TROUPE_POLICY": "simulated"}]


def fail(text):
    print(f"crawler: {text}")
    sys.exit(1)


def check(what, given, expected):
    if given != expected:
        fail(f"{what}: {given!r} instead of {expected!r}")


class Report:
    """What a run of the crawler prints."""

    def __init__(self, *arguments, environment=None):
        began = time.monotonic()
        done = subprocess.run([CRAWLER, *map(str, arguments)], capture_output=True, timeout=SECONDS_MAX, text=True,
                              check=False, env={**os.environ, **(environment or {})})
        self.seconds = time.monotonic() - began
        self.text = done.stdout
        self.status = done.returncode
        if done.stderr or not done.stdout:
            fail(f"{arguments}: {done}")
        lines = done.stdout.splitlines()
        words = lines[0].replace(",", "").split()
        self.pages, self.redirects, self.bytes, self.retries, self.elsewhere = (int(word) for word in words[:10:2])
        self.broken, self.slowest, self.notes = [], [], []
        for line in lines[1:]:
            if " -> " in line:
                self.broken.append(line.strip())
            elif line.startswith("  "):
                self.slowest.append(line.split()[2])
            else:
                self.notes.append(line)
        self.broken.sort()


def write_site(folder):
    """Pages that link each other at random, also themselves. Returns the bytes of what leads somewhere, and what is broken."""
    numbers = random.Random(7)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "sub").mkdir(parents=True)
    names = ["index.html", "sub/index.html"] + [f"{i}.html" for i in range(200)] + [f"sub/{i}.html" for i in range(200)]
    url_of = {name: "/" + name.removesuffix("index.html") for name in names}
    written, broken = 0, []
    for at, name in enumerate(names):
        others = [url_of[names[(at + 1) % len(names)]], *(url_of[numbers.choice(names)] for _ in range(8))]
        text = "".join(f'<p><A class=x\n HREF = "{other}#part">to</A>' for other in others)
        if at % 10 == 3:
            text += f'<img alt="a > b" src="gone{at}.png">'
            broken.append(f"{url_of[name]} -> {'/sub' if name.startswith('sub/') else ''}/gone{at}.png: 404 Not Found")
        (folder / name).write_text(text)
        written += len(text)
    return len(names), written, sorted(broken)


def check_folder():
    count, written, broken = write_site(FOLDER / "random")
    for environment in ENVIRONMENTS:
        report = Report("--slowest", 3, FOLDER / "random", environment=environment)
        missing = sum(len("404 Not Found\n") for _ in broken)
        check("the status", report.status, 1)
        check("pages", (report.pages, report.redirects, report.retries), (count, 0, 0))
        if not written <= report.bytes <= written + 10 * missing:
            fail(f"{report.bytes} bytes, but the pages have {written}")
        check("broken links", report.broken, broken)
        check("slowest pages", len(report.slowest), 3)


PARTS = {
    "index.html": """<!doctype html><!-- <a href="/in_comment"> --><script>var a = '<a href="/in_script">';</script>
<style>a { content: '<a href="/in_style">' }</style><a href='two words.html'>, <a href=two%20words.html>, <a href=?a=1&amp;b=2>,
<a href="mailto:a@b">, <A HREF="http://example.org/">, <a href="https://example.org/">, <a href="data:,x">, <a name="x">, <a href>,
<a href="http://[1/">, <a href="sub">, <a title='it is "href=/in_title"' href="//127.0.0.1:1/">, <a href="data.bin""",
    "two words.html": "<a href='index.html'><a href=''><a href='.'>",
    "sub/index.html": "<a href='../../../index.html'>",
    "data.bin": "<a href='/in_other_type'>" * 1000,
}


def check_references():
    """What counts as a link, and where it leads."""
    for name, text in PARTS.items():
        (FOLDER / "parts" / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / "parts" / name).write_text(text)
    report = Report(FOLDER / "parts")
    same = ["/", "/?a=1&b=2", "/index.html", "/index.html?a=1&b=2"]  # that are the same file
    check("broken links", report.broken, [f"{page} -> http://[1/: this is no URL" for page in same])
    # Beside them "/two%20words.html", "/sub/" and "/data.bin", and the way from "/sub" to "/sub/".
    check("pages", (report.pages, report.redirects), (len(same) + 3, 1))
    # mailto, data, and three other sites.
    check("links to elsewhere", report.elsewhere, 5 * len(same))
    check("broken links of a site without any", Report(FOLDER / "whole").notes, ["no broken links", "slowest pages:"])


class Site(http.server.ThreadingHTTPServer):
    """Answers by the function `answer`, which gets the path and how often it was asked for, and gives a status, a text
    and fields, or bytes that are no answer, or None to close the connection."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer):
        self.answer = answer
        self.lock = threading.Lock()
        self.asked, self.running, self.most = {}, 0, 0
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):  # the crawler has closed a connection
        pass

    def crawl(self, *arguments):
        report = Report(*arguments, f"http://127.0.0.1:{self.server_address[1]}/")
        self.shutdown()
        self.server_close()
        return report


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        site = self.server
        with site.lock:
            number = site.asked[self.path] = site.asked.get(self.path, 0) + 1
            site.running += 1
            site.most = max(site.most, site.running)
        answer = site.answer(self.path, number)
        with site.lock:
            site.running -= 1
        if answer is None or isinstance(answer, bytes):
            self.wfile.write(answer or b"")
            self.close_connection = True
            return
        status, text, *fields = answer
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Content-Type", "text/html; charset=utf-8")
            for name, value in fields:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())
        except OSError:  # the crawler does not wait any longer
            self.close_connection = True


def links(*targets):
    return "".join(f"<a href='{target}'>" for target in targets)


def check_faults():
    end_of_slow = threading.Event()

    def answer(path, number):
        if path == "/":
            return 200, links("/flaky", "/busy", "/slow", "/never", "/closes", "/closes_once", "/moved", "/lost", "/gone", "/nonsense")
        if path == "/flaky":
            return (503, "later") if number <= 2 else (200, links("/behind_flaky"))
        if path == "/busy":
            return (429, "too many", ("Retry-After", "1")) if number == 1 else (200, "")
        if path == "/slow":
            end_of_slow.wait()
        if path == "/behind_flaky":
            time.sleep(0.5)  # sleeps: to be the slowest page
        if path == "/nonsense":  # not tried again
            return b"this is no HTTP\r\n\r\n"
        if path == "/never":
            return 500, "never"
        if path == "/closes" or (path == "/closes_once" and number == 1):
            return None
        if path == "/moved":
            return 301, "", ("Location", "/behind_moved")
        if path == "/lost":
            return 302, "", ("Location", "/gone")
        return (404, links("/of_no_page")) if path == "/gone" else (200, "")

    site = Site(answer)
    report = site.crawl("--tries", 3, "--page-time", 2500)
    end_of_slow.set()
    check("the status", report.status, 1)
    # The client itself repeats a request that a kept connection did not answer, so these are asked for more often.
    closes = site.asked.pop("/closes")
    if not 3 <= closes <= 6:
        fail(f"it asked {closes} times for /closes")
    check("how often it asked", site.asked, {"/": 1, "/flaky": 3, "/behind_flaky": 1, "/busy": 2, "/slow": 1, "/never": 3,
                                             "/closes_once": 2, "/moved": 1, "/behind_moved": 1, "/lost": 1, "/gone": 1,
                                             "/nonsense": 1})
    check("pages", (report.pages, report.redirects), (6, 2))
    of_flaky, of_busy, of_never, of_closes = 2, 1, 2, 2
    if report.retries - (of_flaky + of_busy + of_never + of_closes) not in (0, 1):
        fail(f"{report.retries} retries")
    broken = [line.split(": ")[0] for line in report.broken]
    check("broken links", broken, ["/ -> /closes", "/ -> /gone", "/ -> /never", "/ -> /nonsense", "/ -> /slow", "/lost -> /gone"])
    for line, part in zip(report.broken, ["", "404", "500 Internal Server Error", "", "deadline", "404"]):
        if part not in line:
            fail(f"{line}: it does not say {part}")
    check("the slowest page", report.slowest[0], "/behind_flaky")
    if not 2.4 < report.seconds < 20:
        fail(f"a page may take 2.5 s, but it took {report.seconds} s")


def check_budget():
    """So many failures at once that not each may be tried again."""
    names = [f"/{i}" for i in range(100)]
    site = Site(lambda path, _: (200, links(*names)) if path == "/" else (503, "down"))
    report = site.crawl("--tries", 4)
    check("broken links", len(report.broken), len(names))
    # 10 that were kept, one for 10 pages, and one for each second.
    if not 10 <= report.retries <= 21 + report.seconds:
        fail(f"{report.retries} retries in {report.seconds} s")
    check("requests", sum(site.asked.values()), 1 + len(names) + report.retries)
    without = sum("no retry was left" in line for line in report.broken)
    if without < len(names) - report.retries:
        fail(f"only {without} pages ended for want of a retry: {report.text}")


def check_connections():
    """As many requests at once as it may, and not one more."""
    names = [f"/{i}" for i in range(30)]
    together = threading.Barrier(5)

    def answer(path, _):
        if path == "/":
            return 200, links(*names)
        together.wait(SECONDS_MAX)
        time.sleep(0.1)  # sleeps: nothing tells that no sixth one comes
        return 200, ""

    site = Site(answer)
    report = site.crawl("--connections", 5)
    check("pages", (report.status, report.pages, report.broken), (0, 31, []))
    check("requests at once", site.most, 5)


def check_rate():
    names = [f"/{i}" for i in range(40)]
    report = Site(lambda path, _: (200, links(*names) if path == "/" else "")).crawl("--rate", 40, "--connections", 4)
    check("pages", (report.status, report.pages), (0, 41))
    if report.seconds < 0.9:
        fail(f"41 requests in {report.seconds} s, but 4 and then 40 a second were allowed")


def check_limits():
    """A site without end: it stops at a number of pages, and after a time."""
    def answer(path, _):
        return 200, links(path + "a/", path + "b/")

    report = Site(answer).crawl("--pages", 50)
    check("the status", report.status, 1)
    check("pages", (report.pages, report.broken), (50, []))
    check("what it says", report.notes[0], "too many pages: 51 links were not followed")
    report = Site(answer).crawl("--time", 700, "--rate", 100)
    check("the status", report.status, 1)
    if "the time was over" not in report.notes[0] or report.broken or not 20 < report.pages < 100:
        fail(f"it had 0.7 s for 100 pages a second: {report.text}")
    if not 0.7 <= report.seconds < 10:
        fail(f"it had 0.7 s and took {report.seconds} s")


def check_refusals():
    for arguments in ([], ["a", "b"], ["a", "--rate"], ["a", "--rate", "x"], ["a", "--rate", "0"], ["a", "--tries", "-1"],
                      ["a", "--what", "1"], ["--pages", "99999999999", "a"]):
        done = subprocess.run([CRAWLER, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        check(arguments, (done.returncode, done.stderr.startswith("usage:"), done.stdout), (2, True, ""))
    for site, said in (("/no/such/folder", "/no/such/folder"), ("ftp://a/", "ftp://a/"), ("http://", "http://"),
                       (FOLDER / "whole" / "index.html", "index.html")):
        done = subprocess.run([CRAWLER, site], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        check(site, (done.returncode, said in done.stderr, done.stdout), (2, True, ""))
    (FOLDER / "empty").mkdir(exist_ok=True)
    check("no start page", Report(FOLDER / "empty").broken, ["the start -> /: 404 Not Found"])
    server = Site(None)
    server.shutdown()
    server.server_close()
    report = Report("--tries", 2, f"http://127.0.0.1:{server.server_address[1]}/here")
    if report.status != 1 or not report.broken[0].endswith("Connection refused") or report.retries != 1:
        fail(f"a port without a listener: {report.text}")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "whole").mkdir(parents=True)
    (FOLDER / "whole" / "index.html").write_text("a page")
    check_folder()
    check_references()
    check_faults()
    check_budget()
    check_connections()
    check_rate()
    check_limits()
    check_refusals()
    print("crawler: all pages are found")


main()
