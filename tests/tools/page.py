"""The page shows what is wrong in examples/zoo.cpp to somebody who clicks, in a wide and a narrow window, light and dark.

Chromium is driven without a screen. With TROUPE_SCREENSHOTS=FOLDER the pictures of docs/guide/observing.md are made there.
"""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

from _browser import ENVIRONMENT, FOLDER, MOMENTS_MAX, SECONDS_MAX, Browser, check, fail, selenium

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/servers"))
import servers  # noqa: E402

TOOL, ZOO, SHOP = sys.argv[1:4]


def ask(pid, question):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(SECONDS_MAX)
        stream.connect(str(FOLDER / "troupe" / f"{pid}.sock"))
        stream.sendall(question.encode() + b"\n")
        return json.loads(stream.makefile().readline())


def number(text):
    return int(re.sub(r"\D", "", text))


def ms(text):
    amount, unit = text.split()
    return float(amount) * {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1e3}[unit]


# ---- the three that make trouble ----

def check_blocking(browser):
    """Sorted by the time that classes take, the sloth is the first; its handler takes 20 ms."""
    browser.click("the column p99", "#classes thead button", "p99")  # where a handler may be first that the system interrupted
    browser.wait("the sloth, marked", lambda: [row for row in browser.rows("#classes") if row[0] == "Sloth" and row[4] != "–" and ms(row[4]) > 15], MOMENTS_MAX)
    browser.click("the column busy %", "#classes thead button", "busy %")
    browser.wait("the sloth first", lambda: browser.rows("#classes")[0][0] == "Sloth")
    row = browser.rows("#classes")[0]
    check("it takes 20 ms", ms(row[4]) > 15, row)
    check("it is marked", "bad" in browser.all("#classes tbody tr:first-child td:nth-child(5)")[0].get_attribute("class"), row)
    browser.click("the sloth", "#classes tbody button", "Sloth", MOMENTS_MAX)
    handlers = browser.wait("its handlers", lambda: browser.rows("#detail table"), MOMENTS_MAX)
    check("the handler that blocks", handlers[0][0] == "climb" and ms(handlers[0][1]) > 15, handlers)
    browser.click("close", "#close")


def check_growing(browser):
    """The snake's mailbox is the longest, grows, and its turn is suspended."""
    browser.wait("a mailbox that grows", lambda: [row for row in browser.rows("#mail") if row[1] == "Snake" and row[4].startswith("+")], MOMENTS_MAX)
    actor = next(row[0] for row in browser.rows("#mail") if row[1] == "Snake")
    browser.click("the actor", "#mail tbody button", actor, MOMENTS_MAX)
    story = browser.wait("its story", lambda: re.search(r"Snake #\d+ is suspended\. .* messages wait in its mailbox, \+", browser.text("#detail-body")), MOMENTS_MAX)
    check("what its turn waits for", [row for row in browser.rows("#detail") if row[0] == "&Snake::swallow" and row[2] == "sleep_for"], story)
    browser.click("close", "#close")


def check_cycle(browser):
    """Parrot and mynah are a red cycle; from the one a click leads to the call of the other."""
    browser.wait("the cycle of waits", lambda: "Parrot" in browser.text("#cycles") and "Mynah" in browser.text("#cycles"), MOMENTS_MAX)
    browser.wait("two red lines", lambda: len(browser.all("#graph path.cycle")) == 2, MOMENTS_MAX)
    nodes = [one.get_attribute("aria-label") for one in browser.all("#graph .node")]
    check("nodes say it", {"Parrot, in a cycle of waits", "Mynah, in a cycle of waits", "Keeper<Ant>"} <= set(nodes), nodes)
    browser.click("the parrot", "#cycles button", "Parrot", MOMENTS_MAX)
    browser.wait("its actors", lambda: len(browser.all("#detail table")) == 2, MOMENTS_MAX)
    browser.click("the actor", "#detail table tbody button", None, MOMENTS_MAX)
    for bird, other in (("Parrot", "Mynah"), ("Mynah", "Parrot")):
        browser.wait(f"the story of the {bird}", lambda: f"{bird} #" in browser.text("#detail-body"), MOMENTS_MAX)
        waits = browser.wait("its calls", lambda: [row for row in browser.rows("#detail") if row[2] == f"the answer of &{other}::repeat"], MOMENTS_MAX)
        check("many wait", number(waits[0][4]) > 1 and re.fullmatch(r"zoo\.cpp:\d+", waits[0][1]), waits)
        browser.click("the one that is asked", "#detail table tbody button", waits[0][3], MOMENTS_MAX)
    browser.click("close", "#close")


def check_warnings(browser):
    """The handler that blocks is warned of, with what to do; a click leads to its actor."""
    lines = lambda: [one for one in browser.all("#warning-list li") if "Sloth::climb" in one.text]
    line = browser.wait("the warning", lines)[0]
    line.find_element(browser.css, "summary").click()
    browser.wait("what to do", lambda: "blocking()" in line.text)
    actor = browser.wait("the actor's number", lambda: line.find_element(browser.css, "button").text)
    browser.click("the actor", "#warning-list button", actor)
    browser.wait("its story", lambda: f"Sloth {actor} is" in browser.text("#detail-body"))
    browser.click("close", "#close")
    line.find_element(browser.css, "summary").click()


# ---- what else the page does ----

GAUGES = {"actors": ("metrics", "actors"), "suspended": ("metrics", "suspended"), "failures": ("metrics", "failures"), "messages": ("total", "messages"),
          "dead letters": ("metrics", "dead_letters"), "timers": ("metrics", "timers_armed"), "I/O under way": ("metrics", "io_in_flight"),
          "blocking calls": ("metrics", "blocking_calls"), "lazies queued": ("metrics", "lazies_queued")}


def check_sums(browser, pid):
    """Frozen, the gauges are what the program said; and that lies between what it says before and after."""
    first = ask(pid, "summary")
    before = first["runtimes"][0]
    # The server keeps an answer for a while, so the next moment may show an earlier one.
    browser.wait("a later moment", lambda: browser.driver.execute_script("return state.now.now_ns") > first["now_ns"])
    browser.click("freeze", "#freeze")
    said = browser.driver.execute_script("return state.now")["runtimes"][0]
    shown = dict(browser.driver.execute_script("return [...document.querySelectorAll('#gauges .gauge')].map((g) => [g.children[0].textContent, g.children[1].textContent])"))
    for name, (part, key) in GAUGES.items():
        check(f"the gauge {name}", number(shown[name]) == said[part][key], (shown, said[part]))
    after = ask(pid, "summary")["runtimes"][0]
    for part, key in (("total", "messages"), ("total", "spawned"), ("total", "turns")):
        check(f"{key} only grow", before[part][key] <= said[part][key] <= after[part][key], (before[part], said[part], after[part]))
    check("all animals are there", number(shown["actors"]) > 100_000, shown)
    # A row's messages are those of its handlers, and the rows together are all messages: those that were counted between
    # two looks of the program at itself are the difference.
    rows = {row[0]: number(row[-2]) for row in browser.rows("#classes")}
    parts = {one["class"]: sum(h["messages"] + h["resumed"] for h in one["handlers"]) for one in said["classes"]}
    check("the classes' messages", rows == parts, (rows, parts))
    check("they add up", before["total"]["messages"] <= sum(rows.values()) <= after["total"]["messages"], (rows, before["total"], after["total"]))
    text = browser.text("#classes")
    time.sleep(1.5)  # sleeps: a page that is not frozen would draw a moment meanwhile
    check("it is frozen", browser.text("#classes") == text and "frozen" in browser.text("#basis"), browser.text("#basis"))
    browser.click("go on", "#freeze")
    browser.wait("live again", lambda: browser.text("#basis") == "live" and browser.text("#classes") != text, MOMENTS_MAX)


def check_comparing(browser):
    browser.click("compare", "#compare")
    suspended = lambda: next(row[6] for row in browser.rows("#classes") if row[0] == "Parrot")
    browser.wait("more calls wait than at that moment", lambda: re.search(r"\(\+[1-9]", suspended()), MOMENTS_MAX)
    check("it says so", "changes and rates from" in browser.text("#basis"), browser.text("#basis"))
    browser.click("no longer", "#compare")
    browser.wait("live", lambda: browser.text("#basis") == "live", MOMENTS_MAX)


def check_filter(browser):
    field = browser.driver.find_element(browser.css, "#filter")
    field.send_keys("swallow")  # a handler
    browser.wait("one class", lambda: [row[0] for row in browser.rows("#classes")] == ["Snake"])
    field.send_keys(browser.keys.BACKSPACE * 7)
    browser.wait("all classes", lambda: len(browser.rows("#classes")) > 5)


def check_flame(browser):
    says = lambda: [one.get_attribute("aria-label") for one in browser.all("#flame button")]
    for what, name in (("the handler that takes most time", "climb"), ("what takes the time in it", "climb → hang")):
        browser.wait(what, lambda: [one for one in says() if re.match(rf"worker \d+ → Sloth → {name}: ", one)], MOMENTS_MAX)


def check_trace(browser):
    """The button downloads what the program does in the next second."""
    browser.emulate_downloads()
    field = browser.driver.find_element(browser.css, "#seconds")
    field.send_keys(browser.keys.BACKSPACE * 2 + "1")
    browser.click("download", "#trace")
    file = FOLDER / "zoo-trace.json"
    browser.wait("the file", lambda: file.exists() and file.stat().st_size)
    events = json.loads(file.read_text())["traceEvents"]
    climbs = [one for one in events if one["ph"] == "X" and one["name"] == "&Sloth::climb"]
    check("the sloth climbs in the trace", climbs and max(one["dur"] for one in climbs) >= 20_000, climbs[:5])
    check("the page says what to do", "ui.perfetto.dev" in browser.text("#notice"), browser.text("#notice"))


def check_keyboard(browser):
    """Tab leads to the table, Enter sorts and opens, Escape comes back; the focus is seen, and stays while the page is drawn."""
    browser.load()
    browser.press(browser.keys.TAB)
    check("the first stop skips to the classes", browser.focused()["text"] == "Skip to the classes", browser.focused())
    browser.press(browser.keys.ENTER)

    def tab_until(what, holds):
        for _ in range(40):
            if holds(browser.focused()):
                return
            browser.press(browser.keys.TAB)
        fail(f"the keyboard does not reach {what}: {browser.focused()}")

    tab_until("a column", lambda at: at["table"] == "classes" and at["head"] and at["text"] == "class")
    browser.press(browser.keys.ENTER)
    browser.wait("sorted by name", lambda: [row[0] for row in browser.rows("#classes")][:3] == ["a spawned task", "Ant", "Fish"])
    at = browser.focused()
    check("the focus stayed and is seen", at["text"] == "class" and not at["outline"].startswith("none") and not at["outline"].endswith(" 0px"), at)
    tab_until("a row", lambda at: at["table"] == "classes" and at["text"] == "Fish")
    began = browser.moments()
    browser.wait("two moments more", lambda: browser.moments() > began + 2)
    check("the focus stays", browser.focused()["text"] == "Fish", browser.focused())
    browser.press(browser.keys.ENTER)
    browser.wait("the class opens, and has the focus", lambda: browser.focused()["id"] == "detail-title" and len(browser.rows("#detail")) > 100, MOMENTS_MAX)
    check("100 actors of it", len([row for row in browser.rows("#detail") if row[1] == "Fish"]) == 100, len(browser.rows("#detail")))
    browser.press(browser.keys.ESCAPE)
    browser.wait("back where it was", lambda: browser.focused()["text"] == "Fish" and not browser.all("#detail:not([hidden])"))
    browser.press("/")
    check("a key leads to the filter, and writes nothing there", browser.driver.execute_script("return [document.activeElement.id, $('filter').value]") == ["filter", ""], browser.focused())
    browser.press(browser.keys.TAB)
    browser.click("sorted by time again", "#classes thead button", "busy %")


LINES = """
  return [...document.querySelectorAll(arguments[0])].map((svg) => {
    const d = svg.firstElementChild.getAttribute('d') || '', at = svg.getBoundingClientRect();
    return { points: d.split(/[ML]/).length - 1, shown: at.width >= 60 && at.height >= 10 };
  });"""


def check_courses(browser):
    """Lines of the last minutes, which the program has kept: a page that is loaded anew has them at once."""
    browser.driver.execute_script("course.times.length = 0")
    browser.wait("the course that the program kept, after a gap", lambda: browser.driver.execute_script("return course.times.length") >= 10)
    browser.load()
    browser.wait("it is there from the beginning", lambda: browser.driver.execute_script("return course.times.length") >= 10, 3)
    for what, selector in (("rates", "#rates svg"), ("a class", "#classes tbody tr:first-child svg"), ("trouble", "#warning-list li:first-child svg")):
        browser.wait(f"a line of {what}", lambda s=selector: any(one["points"] >= 10 and one["shown"] for one in browser.driver.execute_script(LINES, s)), MOMENTS_MAX)
    sloth = browser.wait("the sloth's trouble", lambda: [one for one in browser.all("#warning-list li") if "Sloth::climb" in one.text])[0]
    browser.wait("the number that shows it", lambda: re.search(r"\d+ %", sloth.find_element(browser.css, ".course").text))
    title = sloth.find_element(browser.css, ".course").get_attribute("title")
    check("what it is", title == "of a thread in the handler in the last five minutes", title)


def check_address(browser):
    """The address says what is open; Back and an address of another browser lead there."""
    address = lambda: browser.driver.execute_script("return location.search")
    opened = lambda: browser.text("#detail-title") if browser.all("#detail:not([hidden])") else ""
    browser.load()
    check("nothing is open", (address(), opened()) == ("", ""), address())
    browser.click("the snake", "#classes tbody button", "Snake", MOMENTS_MAX)
    browser.wait("its address", lambda: address() == "?class=Snake" and opened() == "Class Snake")
    actor = browser.wait("its actor", lambda: [one.text for one in browser.all("#detail tbody button") if one.text.startswith("#")])[0]
    browser.click("the actor", "#detail tbody button", actor)
    browser.wait("the actor's address", lambda: address() == f"?actor={actor[1:]}" and opened() == f"Actor {actor}")
    browser.driver.back()
    browser.wait("back at the class", lambda: address() == "?class=Snake" and opened() == "Class Snake")
    browser.driver.back()
    browser.wait("back at the beginning", lambda: (address(), opened()) == ("", ""))
    browser.driver.forward()
    browser.wait("forward", lambda: opened() == "Class Snake")
    browser.click("close", "#close")
    browser.wait("closed", lambda: (address(), opened()) == ("", ""))
    url = browser.url
    browser.url = url + "?class=Sloth&sort=alive&filter=s&trouble=long_handler+Sloth+%26Sloth%3A%3Aclimb"
    browser.load()
    browser.wait("a class by its address", lambda: opened() == "Class Sloth" and browser.rows("#detail table"), MOMENTS_MAX)
    sorted_by = [one.text for one in browser.all("#classes th[aria-sort]")]
    check("its order and filter", sorted_by[0].startswith("alive") and browser.driver.execute_script("return $('filter').value") == "s", sorted_by)
    browser.wait("the trouble that is open", lambda: any("blocking()" in one.text for one in browser.all("#warning-list details[open]")), MOMENTS_MAX)
    browser.url = url + "?runtime=7&class=Snake"
    browser.load()
    browser.wait("runtime 0 instead of one that is not there", lambda: address() == "?class=Snake" and browser.rows("#classes"), MOMENTS_MAX)
    check("no word of an end", browser.text("#notice") == "", browser.text("#notice"))
    browser.url = url
    browser.load()


def check_legend(browser):
    browser.click("the legend", "#legend summary")
    browser.wait("the limits", lambda: ["p99", "of classes and handlers", "> 10.0 ms"] in browser.rows("#thresholds") and len(browser.rows("#thresholds")) >= 8)
    browser.click("the legend", "#legend summary")


def check_order(browser):
    """Rows change places only if that is clear; a graph of nothing takes no room."""
    order = lambda kept, values: browser.driver.execute_script(
        "return inStableOrder(arguments[0], Object.entries(arguments[1]), (one) => one[0], (one) => one[1]).map((one) => one[0])", kept, values)
    for kept, values, wanted in ((["a", "b"], {"a": 10, "b": 11}, "ab"), (["a", "b"], {"a": 10, "b": 13}, "ba"), ([], {"a": 1, "b": 3, "c": 2}, "bca"),
                                 (["c", "a"], {"a": 5, "b": 9, "c": 5}, "bca"), (["a", "b"], {"b": 1}, "b"), (["b", "a"], {"a": 0, "b": 0}, "ba")):
        check(f"{values} after {kept}", "".join(order(kept, values)) == wanted, order(kept, values))
    heights = browser.driver.execute_script("""
        const now = state.now, height = () => [$('graph').getBoundingClientRect().height, $('graph-none').hidden];
        const before = height();
        state.now = { ...now, waits: null, runtimes: now.runtimes.map((one) => ({ ...one, edges: [] })) };
        drawGraph();
        const empty = height();
        state.now = now;
        drawGraph();
        return [...before, ...empty];""")
    check("the graph is collapsed", heights[0] > 100 and heights[1:] == [True, 0, False], heights)


def check_crowds(browser):
    """Trouble in a runtime that is not shown is seen, once if all runtimes find it; and of a long table the first rows, until a click."""
    lines, verdict = browser.driver.execute_script("""
        const was = state.now, its = was.runtimes[0];
        const found = (kind, subject) => ({ kind, subject, text: subject + ' is wrong.', class: '', handler: '', active: true, severe: false,
          since_ns: was.now_ns, last_ns: was.now_ns, times: 1, longest_ns: 1, actor: 0, advice: '' });
        const own = [found('exporter_unavailable', 'the exporter')], others = [...own, found('failing_handler', '&Ant::eat of Ant')];
        state.now = { ...was, runtimes: [{ ...its, warnings: own }, { ...its, warnings: others }] };
        drawWarnings();
        const seen = [[...document.querySelectorAll('#warning-list .say')].map((one) => one.textContent).sort(), $('verdict').textContent];
        state.now = was;
        draw();
        return seen;""")
    check("trouble of both", (lines, verdict) == (["runtime 1: &Ant::eat of Ant is wrong.", "the exporter is wrong."], "2 notices"), (lines, verdict))
    seen = browser.driver.execute_script("""
        const box = document.body.appendChild(document.createElement('div')), made = newTable(box), items = [...Array(50).keys()], count = () => firstOf(made, items).length, seen = [count()];
        seen.push(made.more.textContent);
        made.more.click();
        seen.push(count(), made.more.textContent);
        items.length = 20;
        count();
        seen.push(made.more.hidden);
        box.remove();
        return seen;""")
    check("the first rows, or all", seen == [20, "Show all 50", 50, "Show the first 20", True], seen)


def luminance(colour):
    parts = [int(one) / 255 for one in re.findall(r"\d+", colour)[:3]]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def check_looks(browser):
    """As the browser is set, dark or light; each kind of text can be read (WCAG 2, AA); nothing is cut off at 400 px."""
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        colours = browser.driver.execute_script(
            "const of = (s, key) => getComputedStyle(document.querySelector(s))[key];"
            "return [of('body', 'backgroundColor'), of('body', 'color'), of('.soft', 'color'), of('.bad', 'color'), of('#classes tbody button', 'color')]")
        back = luminance(colours[0])
        check(scheme, back < 0.1 if scheme == "dark" else back > 0.9, colours)
        for one in colours[1:]:
            high, low = sorted((luminance(one), back), reverse=True)
            check(f"contrast, {scheme}", (high + 0.05) / (low + 0.05) >= 4.5, colours)
        browser.width(1200, 1720)
        browser.wait("drawn", lambda: browser.moments(), MOMENTS_MAX)
        browser.picture(f"page_few_{scheme}")
    check_narrow(browser)


def check_narrow(browser):
    browser.width(400, 1640)
    browser.driver.execute_script("window.moments = 0")
    browser.wait("drawn again", lambda: browser.moments() > 1)
    browser.picture("page_few_narrow")
    widths = "return [document.documentElement.scrollWidth, window.innerWidth]"
    for what in ("Parrot", "Ant"):
        browser.click(what, "#classes tbody button", what, MOMENTS_MAX)
        browser.wait("its actors", lambda: len(browser.all("#detail table")) == 2)
        check(f"nothing is wider than the window, with {what}", browser.driver.execute_script(widths) == [400, 400], browser.driver.execute_script(widths))
        browser.click("close", "#close")
    # The toolbar is one line, which moves to the side, and stays in view.
    check("the toolbar is one line", browser.driver.execute_script("return document.querySelector('.bar').offsetHeight") < 40, "")
    browser.driver.execute_script("window.scrollTo(0, document.getElementById('mail-title').getBoundingClientRect().top + window.scrollY)")
    for name in ("freeze", "trace"):
        seen = browser.driver.execute_script("""
            const button = document.getElementById(arguments[0]), bar = button.closest('.bar');
            bar.scrollLeft = button.offsetLeft - bar.offsetLeft;
            const at = button.getBoundingClientRect();
            return [window.scrollY > 200, at.top >= 0 && at.bottom < 40, at.right <= 400, button.contains(document.elementFromPoint((at.left + at.right) / 2, (at.top + at.bottom) / 2))];""", name)
        check(f"{name} stays in view", seen == [True, True, True, True], seen)
    browser.driver.execute_script("window.scrollTo(0, 0)")
    browser.emulate("clearDeviceMetricsOverride")


def check_alone(browser):
    loaded = browser.driver.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    check("nothing is loaded from elsewhere", all(one.startswith(browser.url) for one in loaded), loaded)
    wrong = [one for one in browser.driver.get_log("browser") if one["level"] == "SEVERE" and "favicon" not in one["message"]]
    check("no error in the page", not wrong, wrong)


def check_cluster(browser):
    """A node that is alone: its shards are all of one colour, and it says of what it consists."""
    shop = subprocess.Popen([SHOP, "--serve", "--customers", "2", "--name", "corner", "--page", "0"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        browser.url = shop.stdout.readline().removeprefix("page: ").strip()
        browser.load("shop")
        browser.wait("its shards", lambda: [row[:3] for row in browser.rows("#cluster")] == [["corner (this program)", "", "1\u202f024"]], MOMENTS_MAX)
        check("what it is", "node corner of the cluster troupe. It is alone." in browser.text("#cluster p"), browser.text("#cluster"))
        gauges = "return [...document.querySelectorAll('#cluster .gauge')].map((g) => [g.children[0].textContent, g.children[1].textContent])"
        browser.wait("messages", lambda: float(dict(browser.driver.execute_script(gauges))["here/s"].rstrip("k")) > 0, MOMENTS_MAX)
        label, colours, title = browser.driver.execute_script("""
            const map = document.querySelector('#cluster canvas'), pen = map.getContext('2d'), colours = new Set();
            for (let shard = 0; shard < 1024; ++shard)
              colours.add([...pen.getImageData(shard % 64 * 10 + 4, Math.floor(shard / 64) * 10 + 4, 1, 1).data].join());
            map.dispatchEvent(new MouseEvent('mousemove', { clientX: map.getBoundingClientRect().right - 1, clientY: map.getBoundingClientRect().bottom - 1 }));
            return [map.getAttribute('aria-label'), [...colours], map.title];""")
        check("the map has one colour", len(colours) == 1 and not colours[0].startswith("0,0,0"), colours)
        check("and says who owns what", label == "Shards by owner: corner 1024" and re.fullmatch(r"shard 1023: corner", title), (label, title))
        browser.click("the node", "#cluster tbody button", "corner (this program)", MOMENTS_MAX)
        browser.wait("its shards", lambda: "owns 1\u202f024 of 1\u202f024 shards" in browser.text("#detail-body") and "Shards 0–1023" in browser.text("#detail-body"))
        check("its address", browser.driver.execute_script("return location.search").startswith("?node="), browser.driver.execute_script("return location.href"))
        browser.driver.back()
        browser.wait("closed", lambda: not browser.all("#detail:not([hidden])"))
        browser.width(400, 1640)
        browser.wait("drawn again", lambda: browser.driver.execute_script("return document.querySelector('#cluster canvas').clientWidth") < 400)
        widths = browser.driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        check("nothing is wider than the window", widths == [400, 400], widths)
        browser.emulate("clearDeviceMetricsOverride")
    finally:
        shop.terminate()
        check("the shop ends", shop.wait(timeout=SECONDS_MAX) == 0, shop)


@contextlib.contextmanager
def two_nodes():
    """Two nodes of one cluster on this machine: the addresses of their pages, and the process of the first."""
    nodes = []
    with servers.nats() as address:
        try:
            for name in "north", "south":
                nodes.append(subprocess.Popen([SHOP, "--serve", "--name", name, "--nats", address, "--database", f"sqlite:{FOLDER}/nodes", "--page", "0", "--announce"],
                                              stdout=subprocess.PIPE, text=True, env=ENVIRONMENT))
            yield [node.stdout.readline().removeprefix("page: ").strip() for node in nodes], nodes[0].pid
            for node in nodes:
                node.terminate()
            for node in nodes:
                check("the node ends", node.wait(timeout=SECONDS_MAX) == 0, node)
        finally:
            for node in nodes:
                node.kill()
                node.wait(timeout=SECONDS_MAX)


def check_nodes(browser):
    """From the page of one node one click leads to that of another, also to one that counts as another site."""
    if servers.lacks("page", "nats-server"):
        return None
    with two_nodes() as ((north, south), pid):
        browser.url = north
        browser.load("shop")
        links = lambda: [one.get_attribute("href") for one in browser.all("#cluster tbody a") if one.is_displayed()]
        browser.wait("both nodes", lambda: len(browser.rows("#cluster")) == 2)
        browser.wait("a link to the other one alone", lambda: links() == [south])
        browser.picture("page_cluster_few")
        for words in (["top", str(pid), "--once"], ["dump", str(pid)]):
            said = subprocess.run([TOOL, *words], capture_output=True, text=True, env=ENVIRONMENT, timeout=SECONDS_MAX, check=True).stdout.splitlines()
            check("the addresses of both pages", said.count(f"page: {north}") == 1 and said.count(f"page of south: {south}") == 1, said)
        browser.driver.find_element(browser.css, f"#cluster tbody a[href='{south}']").click()
        browser.wait("the other page", lambda: browser.driver.current_url == south and "node south of the cluster" in browser.text("#cluster p") and links() == [north], None)
        browser.url = north.replace("127.0.0.1", "localhost")
        browser.load("shop")
        browser.click("the node", "#cluster tbody button", "south", MOMENTS_MAX)
        link = browser.wait("its link", lambda: browser.all(f"#detail-body a[href='{south}']"))[0]
        check("its text", link.text == "Open the page of south", link.text)
        link.click()
        browser.wait("the other page, of another site", lambda: "node south of the cluster" in browser.text("#cluster p"), None)
        bad = browser.driver.execute_script("return ['javascript:alert(1)', 'data:text/html,a', ' https://a', undefined, '', 'HTTP://a/'].map((page) => pageOf({ page }))")
        check("only addresses become links", bad == ["", "", "", "", "", "HTTP://a/"], bad)
    return None


def check_end(browser, zoo):
    zoo.terminate()
    check("the zoo ends", zoo.wait(timeout=SECONDS_MAX) == 0, zoo)
    browser.wait("that it has ended", lambda: "has ended" in browser.text("#notice"))


def main():
    selenium()
    zoo = page = browser = None
    try:
        zoo = subprocess.Popen([ZOO, "--troubles", "sloth,snake,parrot"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        check("the zoo opens", "open" in zoo.stdout.readline(), zoo)
        page = subprocess.Popen([TOOL, "page", str(zoo.pid), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        browser = Browser(page.stdout.readline().strip())
        check_blocking(browser)
        check_growing(browser)
        check_cycle(browser)
        check_warnings(browser)
        check_sums(browser, zoo.pid)
        check_comparing(browser)
        check_filter(browser)
        check_flame(browser)
        check_trace(browser)
        check_courses(browser)
        check_address(browser)
        check_legend(browser)
        check_order(browser)
        check_crowds(browser)
        check_keyboard(browser)
        check_looks(browser)
        check_alone(browser)
        check_end(browser, zoo)
        check_cluster(browser)
        check_nodes(browser)
    except AssertionError as wrong:
        print(f"page: {wrong}")
        sys.exit(1)
    finally:
        if browser:
            browser.driver.quit()
        for one in (page, zoo):
            if one:
                one.kill()
                one.wait(timeout=SECONDS_MAX)
        shutil.rmtree(FOLDER, ignore_errors=True)
    print("page: all three are found")


main()
