"""wiki gives each page's bytes as they stand in the dump, whole or in ranges, to many clients at once, and ends by SIGTERM."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import urllib.parse

WIKI = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "wiki"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "wiki_check"
SECONDS_MAX = 60
PAGES = 3_000


def fail(text):
    print(f"wiki: {text}")
    sys.exit(1)


def make_dump(path):
    """Writes a dump; gives the pages: title -> bytes."""
    numbers = random.Random(1)
    pages = {}
    with open(path, "wb") as dump:
        dump.write(b"<mediawiki>\n  <siteinfo><title>not a page</title></siteinfo>\n")
        for i in range(PAGES):
            title = f"Page {i:04d}" if i % 3 else f"R&D \"{i}\" <é>"
            encoded = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
            text = "some text\n" * numbers.randrange(0, 200 if i % 500 else 60_000)
            page = f"  <page>\n    <title>{encoded}</title>\n    <text>{text}</text>\n  </page>\n".encode()
            pages[title] = page
            dump.write(page)
        dump.write(b"  <page>\n    <title>Cut off</title>\n    <text>no end")
    return pages


def start(dump, environment=None):
    server = subprocess.Popen([WIKI, dump, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **(environment or {})})
    said = server.stdout.readline()
    found = re.fullmatch(r"(\d+) pages, (\d+) bytes of index, http://127\.0\.0\.1:(\d+)/\n", said)
    if not found:
        fail(f"said {said!r}: {server.stderr.read()}")
    return server, int(found[1]), int(found[3])


def stop(server):
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=SECONDS_MAX)
    if server.returncode != 0 or out or err:
        fail(f"ended with {server.returncode}: {out}{err}")


def get(connection, path, headers=None):
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer


def path_of(title):
    return "/wiki/" + urllib.parse.quote(title.replace(" ", "_"))


def ask_for_many(port, pages, seed):
    numbers = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    for title in numbers.sample(sorted(pages), 150):
        status, body, _ = get(connection, path_of(title))
        if status != 200 or body != pages[title]:
            fail(f"{title}: {status}, {len(body)} bytes instead of {len(pages[title])}")
        first = numbers.randrange(len(pages[title]))
        last = numbers.randrange(first, len(pages[title]))
        status, body, answer = get(connection, path_of(title), {"Range": f"bytes={first}-{last}"})
        if status != 206 or body != pages[title][first:last + 1] or answer.headers["Content-Range"] != f"bytes {first}-{last}/{len(pages[title])}":
            fail(f"{title}, {first} to {last}: {status}, {answer.headers}")
    connection.close()


def check_titles(port, pages):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    ordered = sorted(pages, key=str.encode)
    for prefix, limit in (("Page 00", None), ("Page 1", 1000), ("R&D", 5), ("", 3), ("none", 7), ("Page", 0)):
        query = {"prefix": prefix} | ({} if limit is None else {"limit": limit})
        status, body, _ = get(connection, "/titles?" + urllib.parse.urlencode(query))
        expected = [title for title in ordered if title.startswith(prefix)][:20 if limit is None else limit]
        if status != 200 or json.loads(body) != expected:
            fail(f"titles {prefix} {limit}: {status} {body[:200]}")
    for path, expected in (("/titles?limit=1001", 400), ("/titles?limit=x", 400), ("/wiki/None", 404), ("/wiki/Cut_off", 404), ("/wiki/", 404), ("/else", 404)):
        status, body, _ = get(connection, path)
        if status != expected:
            fail(f"{path}: {status}, not {expected}")
    status, body, answer = get(connection, path_of(ordered[0]), {"Range": "bytes=99999999-"})
    if status != 416:
        fail(f"a range behind the end: {status}")
    connection.close()


def check_refusals():
    for words, code in (([], 2), ([FOLDER / "missing.xml"], 1), ([FOLDER / "dump.xml", "--port", "many"], 1), ([FOLDER / "dump.xml", "--speed", "1"], 2)):
        done = subprocess.run([WIKI, *words], capture_output=True, text=True, timeout=SECONDS_MAX)
        if done.returncode != code or not done.stderr or done.stdout:
            fail(f"{words}: {done.returncode} {done.stdout}{done.stderr}")


FOLDER.mkdir(exist_ok=True)
all_pages = make_dump(FOLDER / "dump.xml")
for chosen in ({"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "4", "TROUPE_IO": "epoll"}):
    running, count, at = start(FOLDER / "dump.xml", chosen)
    if count != PAGES:
        fail(f"{count} pages, not {PAGES}")
    with concurrent.futures.ThreadPoolExecutor() as clients:
        for done in [clients.submit(ask_for_many, at, all_pages, seed) for seed in range(4)]:
            done.result()
    check_titles(at, all_pages)
    stop(running)
check_refusals()
