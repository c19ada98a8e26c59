"""An operator sees all twenty troubles of examples/zoo.cpp at a time, soon after they have lasted long enough: on the page in the first
1400 x 900 pixels, without a click, and in `troupe top --once --json` and `troupe dump`; and for as long as they last.

With TROUPE_SCREENSHOTS=FOLDER the pictures of docs/guide/observing.md are made there.
"""

import json
import re
import shutil
import subprocess
import sys
import time

from _browser import ENVIRONMENT, FOLDER, SECONDS_MAX, Browser, check, fail, selenium

TOOL, ZOO = sys.argv[1:3]
WIDTH, HEIGHT = 1400, 900
PAGE_SECONDS_MAX, TOP_SECONDS_MAX = 5, 10  # from the moment at which all have lasted for their thresholds
THRESHOLD_SECONDS = 10  # of runtime_options::warnings, for what grows; of the others it is shorter
GROWN_SECONDS_MAX = 120  # until there is so much of what grows; the machine may have much else to do
LASTS_SECONDS = 15  # longer than a warning is active after it was last found

# By name: the kind of the warning, and its subject.
TROUBLES = {
    "sloth": ("long_handler", "&Sloth::climb of Sloth"),
    "hippo": ("long_handler", "&Hippo::graze of Hippo"),
    "squirrel": ("long_handler", "&Squirrel::run_in_wheel of Squirrel"),
    "snake": ("growing_mailbox", "the mailbox of Snake"),
    "parrot": ("wait_cycle", "Parrot → Mynah → Parrot|Mynah → Parrot → Mynah"),
    "wolf": ("wait_cycle", "Wolf → Fox → Hen → Wolf|Fox → Hen → Wolf → Fox|Hen → Wolf → Fox → Hen"),
    "bat": ("unanswered_ask", "Bat #[0-9]+ in &Bat::call"),
    "bear": ("long_lock", "a lock held by &Bear::hibernate since zoo.cpp:[0-9]+"),
    "spider": ("growing_suspended", "Spider"),
    "penguin": ("pool_exhausted", "the pool nests"),
    "elephant": ("blocking_pool_full", "all 4 threads for blocking calls"),
    "moth": ("failing_handler", "&Moth::fly of Moth"),
    "dodo": ("dead_letters", "[0-9]+ messages"),
    "rabbit": ("growing_class", "Rabbit"),
    "magpie": ("descriptors_run_out", "the process"),
    "mayfly": ("late_timers", "[0-9]+ timers?"),
    "tortoise": ("slow_requests", "GET /tortoise"),
    "locust": ("refused_clients", "the HTTP server 127.0.0.1:[0-9]+"),
    "termite": ("slow_statements", "WITH RECURSIVE bites.* in sqlite"),
    "pigeon": ("exporter_unavailable", "the exporter of spans"),
}


def tool(*words):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, env=ENVIRONMENT, timeout=SECONDS_MAX, check=True).stdout


def is_of(name, kind, subject):
    return kind == TROUBLES[name][0] and re.match(TROUBLES[name][1], subject)


def missing(found):
    """The troubles of which none of these pairs of a kind and a subject is."""
    return [name for name in TROUBLES if not any(is_of(name, kind, subject) for kind, subject in found)]


def summary(pid):
    return json.loads(tool("top", pid, "--once", "--json"))["runtimes"][0]


def in_top(pid):
    return [(one["kind"], one["subject"]) for one in summary(pid)["warnings"] if one["active"]]


def wait_for_thresholds(pid):
    """Until all troubles have lasted for their thresholds. Returns when that was."""
    opened = time.monotonic()

    def has_grown():
        classes = {one["class"]: one for one in summary(pid)["classes"]}
        return classes["Rabbit"]["alive"] >= 1000 and classes["Spider"]["suspended"] >= 1000
    while not has_grown():
        check("rabbits and flies grow in number", time.monotonic() < opened + GROWN_SECONDS_MAX, summary(pid)["classes"])
        time.sleep(0.2)  # sleeps: it tells nobody
    time.sleep(max(0, opened + THRESHOLD_SECONDS - time.monotonic()))  # sleeps: the troubles last
    return max(time.monotonic(), opened + THRESHOLD_SECONDS)


def check_top(pid, due):
    while lacking := missing(in_top(pid)):
        check(f"all troubles are in top within {TOP_SECONDS_MAX} s", time.monotonic() - due < TOP_SECONDS_MAX, lacking)
        time.sleep(0.2)  # sleeps: the program looks for trouble once a second


def check_lasting(pid):
    until = time.monotonic() + LASTS_SECONDS
    while time.monotonic() < until:
        check("no trouble is over while it lasts", not (lacking := missing(in_top(pid))), lacking)
        time.sleep(0.5)  # sleeps: as above


def check_dump(pid):
    dump = tool("dump", pid)
    first = dump[:dump.index("troupe: dump:")]
    lacking = [name for name, (_, subject) in TROUBLES.items() if not re.search(subject, first)]
    check("all troubles are in the dump, before its waits", not lacking, (lacking, dump))


# What is seen of each line, without scrolling: its whole subject, in the colour of its severity.
SEEN = """
  return [...document.querySelectorAll('#warning-list li')].map((line) => {
    const subject = line.querySelector('b'), at = subject.getBoundingClientRect(), around = line.querySelector('.say').getBoundingClientRect();
    const right = Math.min(at.right, around.right), hit = document.elementFromPoint((at.left + right) / 2, (at.top + at.bottom) / 2);
    return { kind: line.item.kind, subject: subject.textContent, says: line.querySelector('summary').textContent,
      inside: at.top >= 0 && at.left >= 0 && at.bottom <= window.innerHeight && at.right <= around.right + 1 && window.scrollY === 0,
      shown: subject.contains(hit) || line.contains(hit), tall: at.height > 8, weight: Number(getComputedStyle(subject).fontWeight),
      colour: getComputedStyle(line).borderLeftColor, soft: getComputedStyle(document.documentElement).getPropertyValue('--soft') };
  });"""


def seen(browser):
    return [(one["kind"], one["subject"]) for one in browser.driver.execute_script(SEEN)
            if one["inside"] and one["shown"] and one["tall"] and one["weight"] >= 600 and "rgb(90, 99, 112)" not in one["colour"]]


def check_page(browser, due):
    while lacking := missing(seen(browser)):
        if time.monotonic() - due > PAGE_SECONDS_MAX:
            lines = browser.driver.execute_script(SEEN)
            fail(f"not seen in the first {WIDTH} x {HEIGHT} pixels within {PAGE_SECONDS_MAX} s: {lacking}\n" + "\n".join(map(str, lines)))
        time.sleep(0.1)  # sleeps: the page is redrawn once a second
    verdict = browser.text("#verdict")
    check("the verdict counts them", re.fullmatch(r"\d+ troubles, \d+ notices", verdict) and sum(map(int, re.findall(r"\d+", verdict))) >= len(TROUBLES), verdict)
    check("no part of the page scrolls to the side", browser.driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"), "")


def check_pictures(browser):
    """At three widths, light and dark: nothing is wider than the window."""
    for name, width, height, scheme in (("light", 1400, 900, "light"), ("dark", 1400, 900, "dark"), ("medium", 800, 900, "light"), ("narrow", 400, 900, "light")):
        browser.scheme(scheme)
        browser.width(width, height)
        browser.driver.execute_script("window.moments = 0")
        browser.wait("drawn again", lambda: browser.moments() > 1)
        browser.picture(f"page_{name}")
        widths = browser.driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        # A narrow window grows with its content.
        check(f"nothing is wider than {width} px", widths[0] <= widths[1] <= width, widths)


def main():
    selenium()
    zoo = page = browser = None
    try:
        zoo = subprocess.Popen([ZOO], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
        check("the zoo opens", "open" in zoo.stdout.readline(), zoo)
        page = subprocess.Popen([TOOL, "page", str(zoo.pid), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        browser = Browser(page.stdout.readline().strip())
        browser.width(WIDTH, HEIGHT)
        browser.scheme("light")
        due = wait_for_thresholds(zoo.pid)
        check_page(browser, due)
        check_top(zoo.pid, due)
        check_dump(zoo.pid)
        check_lasting(zoo.pid)
        check_pictures(browser)
        zoo.terminate()
        check("the zoo ends", zoo.wait(timeout=SECONDS_MAX) == 0, zoo)
    except AssertionError as wrong:
        print(f"troubles: {wrong}")
        sys.exit(1)
    finally:
        if browser:
            browser.driver.quit()
        for one in (page, zoo):
            if one:
                one.kill()
                one.wait(timeout=SECONDS_MAX)
        shutil.rmtree(FOLDER, ignore_errors=True)
    print(f"troubles: all {len(TROUBLES)} are seen")


main()
