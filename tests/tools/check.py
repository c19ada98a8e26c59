"""`troupe` finds a slow handler, a mailbox that grows and a turn that waits in a running program."""

import itertools
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

TOOL, PROGRAM = sys.argv[1:3]
SECONDS_MAX = 60
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_tool"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER)}


def fail(text):
    print(f"troupe: {text}")
    sys.exit(1)


def check(what, holds, seen):
    if not holds:
        fail(f"{what}:\n{seen}")


def tool(*arguments, code=0):
    ended = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX,
                           check=False, env=ENVIRONMENT)
    check(f"{arguments} ended with {ended.returncode}, not {code}", ended.returncode == code, ended)
    return ended.stdout if code == 0 else ended.stdout + ended.stderr


def start(**environment):
    program = subprocess.Popen([PROGRAM, "an", "argument"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**ENVIRONMENT, **environment})
    check("the program begins", program.stdout.readline() == "ready\n", program)
    return program


def check_list(pid):
    """`ps` shows user, uptime and arguments, and removes the sockets of the dead, and no other file."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    found = [line for line in tool("ps").splitlines()[1:] if line.split()[0] == str(pid)]
    check("ps lists it", found and re.fullmatch(rf" *{pid} {user} +[0-9.]+m?s +1 +\d+ +\d+  {re.escape(PROGRAM)} an argument", found[0]), found)
    check("the numbers alone", str(pid) in tool("ps", "--pids").split(), tool("ps", "--pids"))
    ended = subprocess.Popen(["true"])
    ended.wait()
    folder = FOLDER / "troupe"
    dead, file = folder / f"{ended.pid}.sock", folder / "4000001.sock"
    with socket.socket(socket.AF_UNIX) as left, socket.socket(socket.AF_UNIX) as elsewhere:
        left.bind(str(dead))
        # As that of a container which shares the folder, whose processes have other numbers.
        elsewhere.bind(str(folder / "4000002.sock"))
        elsewhere.listen()
        file.write_text("no socket")
        left.close()
        check("numbers remove nothing", dead.exists() or not tool("ps", "--pids"), dead)
        done = subprocess.run([TOOL, "ps"], capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=ENVIRONMENT)
        check("the dead one is removed", done.stderr == "troupe: removed 1 socket of processes that have ended\n" and not dead.exists(), done)
        check("nothing else is", file.exists() and (folder / "4000002.sock").exists() and (folder / f"{pid}.sock").exists(), os.listdir(folder))
    file.unlink()
    (folder / "4000002.sock").unlink()


def are_sorted(lines):
    """Whether a table of handlers is sorted by their names. The handler of waiting messages may have a row."""
    rows = itertools.dropwhile(lambda line: not line.startswith("handler"), lines)
    rows = itertools.takewhile(lambda line: line and not line.startswith("I/O"), itertools.islice(rows, 1, None))
    names = [re.split("  +", line)[0] for line in rows]
    return names == sorted(names) and "Grows::wait" in names[:2]


def check_tables(pid):
    seen = tool("top", pid, "--once", "--sort", "busy", "--interval", "1")
    lines = seen.splitlines()
    check("no line is longer than a terminal", max(map(len, lines)) <= 80, seen)
    first = next(i for i, line in enumerate(lines) if line.startswith("handler")) + 1
    check("the slow handler is the busiest", lines[first].startswith("Slow::work"), seen)
    busy, blocked = (float(part) for part in lines[first].split()[3:5])
    check("it sleeps for about half of the time", busy < 10 and 20 < blocked < 101, seen)
    by_name = tool("top", pid, "--once", "--interval", "0.1", "--sort", "name").splitlines()
    check("sorted by name", are_sorted(by_name), by_name)


def check_no_terminal(pid):
    """Without a terminal `top` prints one plain table and ends."""
    seen = tool("top", pid, "--interval", "0.1", "--sort", "wait")
    lines = seen.splitlines()
    check("a table", any(line.startswith("handler") and line.split()[7] == "*wait99" for line in lines), seen)
    check("once, and nothing for a terminal", seen.count("wait99") == 1 and "\x1b" not in seen, seen)


def check_actors(pid):
    longest = json.loads(tool("actors", pid, "--longest", "--count", 3, "--json"))["actors"]
    check("the longest mailbox", longest and longest[0]["class"] == "Grows" and longest[0]["mail"] > 0, longest)
    time.sleep(0.5)  # sleeps: the mailbox grows meanwhile
    later = json.loads(tool("actors", pid, "--longest", "--count", 1, "--json"))["actors"]
    check("it grows", later[0]["mail"] > longest[0]["mail"], (longest, later))
    check("it waits", later[0]["state"] == "suspended", later)
    check("its name and its last handler", (later[0]["name"], later[0]["last_handler"]) == ("the tree", "&Grows::wait"), later)
    page = json.loads(tool("actors", pid, "--class", "Quick", "--count", 1000, "--json"))
    check("a page of actors", len(page["actors"]) == 1000 and page["next"] > 0, page["next"])
    said = tool("actors", pid, "--class", "Quik", code=1)
    check("an unknown class", said == f"troupe: process {pid} has no class Quik (did you mean Quick?): `troupe top {pid} --once` shows its classes\n", said)
    check("as a table", 'Grows "the tree"  &Grows::wait' in tool("actors", pid, "--longest"), tool("actors", pid, "--longest"))
    dump = tool("dump", pid)
    check("a dump names who waits", re.search(r'Grows #\d+ "the tree" in &Grows::wait waits at', dump), dump)


def check_locks(dump):
    """Calls that wait for a lock are under its holder, those of the most wanted lock first."""
    place = r"program\.cpp:\d+"
    lines = (rf"  a lock held by &Keeper::keep since {place} \(lock [12]\): 4 calls wait\n"
             rf"    3 x Knocker in &Knocker::knock waits at {place}: #\d+, #\d+, #\d+\n"
             rf"    Knocker #\d+ in &Knocker::enter waits at {place}\n"
             rf"  a lock held by &Keeper::keep since {place} \(lock [12]\): 1 call waits\n"
             rf"    Knocker #\d+ in &Knocker::knock waits at {place}\n")
    found = re.findall(lines, dump)
    check("waits by lock", len(found) == 1 and "(lock 1)" in found[0] and "(lock 2)" in found[0], dump)


def check_warnings(pid):
    """Of the slow handler, and of the mailbox that grows; with what to do."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        dump = tool("dump", pid)
        if "&Slow::work of Slow" in dump and "the mailbox of Grows" in dump:
            break
        check("the slow handler and the mailbox are worth warnings", time.monotonic() < deadline, dump)
        time.sleep(0.2)  # sleeps: the program warns once the mailbox has grown for a while
    groups = r"^  5 x Visitor in &Visitor::queue waits at program.cpp:\d+ for [^:]*: #\d+, #\d+, #\d+, …$"
    check("equal lines are one, with their number", len(re.findall(groups, dump, re.M)) == 1 and dump.count("&Visitor::queue") == 1, dump)
    check_locks(dump)
    check("with --all they are not", len(re.findall(r"^  Visitor #\d+ in &Visitor::queue waits at", tool("dump", pid, "--all"), re.M)) == 5, dump)
    check("warnings come first", dump.split()[:3] == ["ago", "times", "warning"] and dump.index("the mailbox of Grows") < dump.index("troupe: dump:"), dump)
    check("with what to do", "give calls that block to blocking()" in dump and "spawn_options::mailbox" in dump, dump)
    check("top says so, too", re.search(r", [1-9]\d* warnings$", tool("top", pid, "--once", "--interval", "0.1"), re.M), dump)
    metrics = re.search(r'troupe_warnings_total{runtime="0",kind="growing_mailbox"} (\d+)', tool("metrics", pid))
    check("the metrics count them", metrics and int(metrics[1]) >= 1, metrics)


def check_numbers(pid):
    """The counts are exact, and those of the metrics are those of the summary."""
    summary = json.loads(tool("top", pid, "--json", "--interval", "0.05"))["runtimes"][0]
    quick = next(one for one in summary["classes"] if one["class"] == "Quick")
    add = next(one for one in quick["handlers"] if one["handler"].endswith("::add"))
    check("messages of Quick", (quick["alive"], add["messages"]) == (2000, 20000), quick)
    text = tool("metrics", pid)
    for line in ('troupe_handler_messages_total{runtime="0",class="Quick",handler="&Quick::add"} 20000',
                 'troupe_handler_failures_total{runtime="0",class="Quick",handler="&Quick::fail"} 1',
                 'troupe_class_actors{runtime="0",class="Quick"} 2000', 'troupe_failures_total{runtime="0"} 1'):
        check(line, line in text.splitlines(), text)
    if not shutil.which("promtool"):
        print("troupe: partly skipped: needs promtool: the format of the metrics was not checked")
        return
    lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=SECONDS_MAX,
                          check=False)
    check("promtool", lint.returncode == 0 and not lint.stdout + lint.stderr, lint)


def sums_of(text):
    """The values of counters, and of the parts of histograms, by their names with labels."""
    rising = {name for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M) if kind in ("counter", "histogram")}
    samples = re.findall(r"^(\w+)(\S*) (\S+)$", text, re.M)
    return {name + labels: float(value) for name, labels, value in samples if name in rising or re.sub("_(bucket|count|sum)$", "", name) in rising}


def check_sums_rise(pid):
    """No sum falls from one answer to the next, while the program works."""
    before = first = sums_of(tool("metrics", pid))
    for _ in range(20):
        now = sums_of(tool("metrics", pid))
        check("no sum is gone", set(before) <= set(now), set(before) - set(now))
        fallen = {name: (value, now[name]) for name, value in before.items() if now[name] < value}
        check("no sum falls", not fallen, fallen)
        before = now
    grown = {name for name, value in first.items() if before[name] > value}
    check("sums of messages and of times grow", all(any(part in name for name in grown) for part in ("messages_total", "_seconds_total", "_bucket")), grown)


def ask(pid, question):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(SECONDS_MAX)
        stream.connect(str(FOLDER / "troupe" / f"{pid}.sock"))
        stream.sendall(question.encode() + b"\n")
        return json.loads(stream.makefile().readline())


def check_history(pid):
    """The program keeps its numbers of the last hour; `top --at` shows a moment of it."""
    deadline = time.monotonic() + SECONDS_MAX
    while len((kept := ask(pid, "history 0 0 300"))["times_ns"]) < 5:
        check("five looks", time.monotonic() < deadline, kept["times_ns"])
        time.sleep(0.2)  # sleeps: the program looks once a second
    times = kept["times_ns"]
    check("a second apart", kept["step_s"] == 1 and all(later - before > 5e8 for before, later in zip(times, times[1:])), times)
    rows = [(table["prefix"], row["labels"], row["series"]) for table in kept["tables"] for row in table["rows"]]
    lengths = {len(values) for _, _, series in rows for values in series.values()}
    check("each series has a value for each look", lengths == {len(times)}, lengths)
    slow = next(series for prefix, labels, series in rows if prefix == "troupe_handler" and labels == ["Slow", "&Slow::work"])
    check("the rate of a counter", 10 < slow["messages"][-1] < 100, slow)
    check("that of time blocked", 0.1 < slow["blocked_seconds"][-1] < 1.5, slow)
    check("the bound of new values", slow["duration_seconds_p99"][-1] >= 0.02, slow)
    quick = next(series for prefix, labels, series in rows if prefix == "troupe_class" and labels == ["Quick"])
    check("a gauge", set(quick["alive"][1:]) <= {0, 2000} and quick["alive"][-1] == 2000, quick)  # the first look may come while they are spawned
    alone = ask(pid, "history 0 0 2 troupe_class")
    check("of one table, of two looks", {table["prefix"] for table in alone["tables"]} == {"troupe_class"} and len(alone["times_ns"]) == 2, alone)
    for wrong in "history", "history 0", "history 0 0 0", "history 0 0 3601", "history 0 3601 1", "history 9 0 1", "history x 0 1":
        check(f"{wrong} is refused", "error" in ask(pid, wrong), wrong)
    deadline = time.monotonic() + SECONDS_MAX
    head = rf".* \({pid}\), [12](\.\d)?s ago \(\d\d:\d\d:\d\d\), rates over 1s"
    while not re.fullmatch(head, (lines := (seen := tool("top", pid, "--at", "-2s")).splitlines())[0]):
        check("the head names the program and the moment", time.monotonic() < deadline, seen)  # a look may come late
    row = next(line.split() for line in lines if line.startswith("Slow::work"))
    check("the rate of that second", 10 < float(row[2]) < 100, seen)
    check("no line is longer than a terminal", max(map(len, lines)) <= 80, seen)
    check("as JSON", json.loads(tool("top", pid, "--at", "1s", "--json"))["times_ns"], "")
    said = tool("top", pid, "--at", "-50m", code=1)
    check("of a time before its start", f"process {pid} keeps no numbers of 50m00s ago: it is observed for" in said, said)
    for wrong in "-2h", "soon", "5d", "-":
        check(f"{wrong} is no time", "is no time ago: write -30s" in (said := tool("top", pid, f"--at={wrong}", code=1)), said)


def messages_of(event):
    """How many messages the program has handled, by an event of its page."""
    return json.loads(event.removeprefix("data: "))["summary"]["runtimes"][0]["total"]["messages"]


def check_page(pid):
    """The page is whole in one file, live, and for this machine alone."""
    page = subprocess.Popen([TOOL, "page", str(pid), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        url = page.stdout.readline().strip()

        def get(path, **fields):
            asked = urllib.request.Request(url + path, headers=fields)
            with urllib.request.urlopen(asked, timeout=SECONDS_MAX) as answer:
                return answer.read().decode()

        text = get("")
        check("a page", "<title>troupe</title>" in text, text[:300])
        check("it loads nothing from elsewhere", not re.search(r"(src|href)\s*=\s*[\"']?(http|//)|url\(", text), text[:300])
        kept = json.loads(get("history?seconds=3"))
        check("the last three seconds", len(kept["times_ns"]) == 3, kept["times_ns"])
        longest = json.loads(get("longest?class=Grows&runtime=0"))["actors"]
        check("the longest mailbox", longest and longest[0]["class"] == "Grows", longest)
        check("who waits", "Grows::wait" in json.loads(get("dump"))["dumps"][0], get("dump"))
        check("metrics", 'troupe_class_actors{runtime="0",class="Quick"} 2000' in get("metrics"), get("metrics")[:500])
        with urllib.request.urlopen(url + "events", timeout=SECONDS_MAX) as events:
            first, empty, second = (events.readline().decode() for _ in range(3))
            check("events", first.startswith("data: {") and empty == "\n" and second.startswith("data: {"), (first[:80], empty, second[:80]))
            deadline = time.monotonic() + SECONDS_MAX
            while messages_of(second) <= messages_of(first):  # the program may have had no processor meanwhile
                check("they are live", time.monotonic() < deadline, (messages_of(first), messages_of(second)))
                events.readline()
                second = events.readline().decode()
        check("with the last seconds", len(json.loads(first.removeprefix("data: "))["history"]["times_ns"]) == 5, first[-300:])
        for path in "", "events", "dump", "longest", "actors", "actor", "trace?seconds=1", "metrics":
            try:
                get(path, Host="elsewhere.example")
                fail(f"/{path} is shown under the name of another machine")
            except urllib.error.HTTPError as refused:
                check("refused", refused.code == 403, refused)
        for path, code in (("longest?class=a%0Adump", 400), ("longest?runtime=x", 503), ("history?ago=x", 503), ("actor?id=x", 503), ("actor?id=1%0Adump", 400),
                           ("events?runtime=0%0A", 400), ("trace?seconds=61", 400), ("trace?seconds=x", 400), ("nothing", 404)):
            try:
                get(path)
                fail(f"/{path} is answered")
            except urllib.error.HTTPError as refused:
                check(path, refused.code == code, refused)
    finally:
        page.terminate()
    check("the page's server ends", page.wait(timeout=SECONDS_MAX) == 0, page)
    said = tool("page", pid, "--listen", "0.0.0.0:0", code=1)
    check("it says what to do", "127.0.0.1:PORT" in said, said)


def check_log(pid):
    """The levels of the log are seen, and changed while the program runs."""
    def levels(*arguments):
        return [line.split() for line in tool("log", pid, *arguments).splitlines()]

    check("the level at the start", levels() == [["info"]], levels())
    check("a level of a logger", levels("debug", "orders") == [["info"], ["debug", "orders"]], levels())
    check("a level of all", levels("error") == [["error"], ["debug", "orders"]], levels())
    said = tool("log", pid, "loud", code=2)
    check("it says what a level is", "trace,debug" in said, said)
    check("counts in the metrics", "troupe_log_dropped_total 0" in tool("metrics", pid).splitlines(), tool("metrics", pid)[:500])


def check_trace(pid):
    """A trace of some time, in the format of Chrome's viewer, while another one is refused."""
    file = FOLDER / "trace.json"
    first = subprocess.Popen([TOOL, "trace", str(pid), "30s", "-o", FOLDER / "first.json"], env=ENVIRONMENT)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while not (FOLDER / "first.json").exists():
            check("the first trace begins", time.monotonic() < deadline and first.poll() is None, first)
            time.sleep(0.01)  # sleeps: the tool says nothing when it has asked
        while "already taken" not in (said := subprocess.run([TOOL, "trace", str(pid), "1ms", "-o", file], capture_output=True,
                                                             text=True, timeout=SECONDS_MAX, check=False, env=ENVIRONMENT).stderr):
            check("one trace at a time", time.monotonic() < deadline, said)
            file.unlink()  # it came first
        check("a refused trace leaves no file", not file.exists(), said)
    finally:
        first.kill()
    first.wait()
    # The program sees that the first one has gone.
    while subprocess.run([TOOL, "trace", str(pid), "0.5s", "-o", file], check=False, capture_output=True, env=ENVIRONMENT,
                         timeout=SECONDS_MAX).returncode != 0:
        check("a trace after one that was given up", time.monotonic() < deadline, pid)
        time.sleep(0.01)  # sleeps: until then it is refused
    for seen in range(2):
        events = json.loads(file.read_text())["traceEvents"]
        # The first and the last of all may have been cut off.
        work = sorted((one for one in events if one["ph"] == "X" and one["name"] == "&Slow::work"), key=lambda one: one["ts"])
        check(f"the slow handler is in trace {seen}", len(work) >= 5 and all(one["dur"] >= 5000 for one in work[1:-1]), work[:9])
        check("of that time alone", max(one["ts"] for one in work) < 5e6 and min(one["ts"] for one in work) >= 0, work)
        check("threads have names", any(one["name"] == "thread_name" for one in events), events[:9])
        file.unlink()
        tool("trace", pid, "500ms", "-o", file)
    head, *rows = tool("trace", pid, "500ms", "--text").splitlines()
    check("a table to read", head.split() == ["Thread", "Time", "(ms)", "Event"] and any("&Slow::work" in row and row.endswith("begins") for row in rows), rows[:9])
    times = [float(row[18:].split()[0]) for row in rows if "worker" in row[:18]]
    check("in the order of time", times == sorted(times) and len(times) > 10, times[:9])
    said = tool("trace", pid, "1s", code=1)
    check("a file or a table", "-o" in said and "--text" in said, said)
    said = tool("trace", pid, "1s", "-o", file, code=1)
    check("a file that exists", "exists" in said and file.stat().st_size > 0, said)
    said = tool("trace", pid, "1s", "-o", FOLDER / "nowhere" / "a.json", code=1)
    check("a folder that does not exist", "cannot be written" in said, said)
    for bad in "0s", "5h", "x", "11m", "-1s", "1e99s", "nan":
        said = tool("trace", "-o", FOLDER / "bad.json", "--", pid, bad, code=1)
        check(f"{bad} is no duration", "is no duration" in said, said)
    check("no file of theirs", not (FOLDER / "bad.json").exists(), os.listdir(FOLDER))


def check_terminal(pid):
    """tmux is the terminal, of 80 columns and 24 lines."""
    if not shutil.which("tmux"):
        print("troupe: partly skipped: needs tmux: no key was pressed")
        return
    tmux = ["tmux", "-S", str(FOLDER / "tmux"), "-f", "/dev/null"]

    def do(*arguments):
        return subprocess.run([*tmux, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
                              env={**ENVIRONMENT, "TERM": "xterm-256color", "LANG": "C.UTF-8"}).stdout

    def wait_for(what, holds, *how):
        deadline = time.monotonic() + 20
        while True:
            seen = do("capture-pane", *how, "-p", "-t", "t")
            if holds(seen.splitlines()):
                return
            if time.monotonic() > deadline:
                fail(f"on the terminal {what} is not seen:\n{seen}")
            time.sleep(0.05)  # sleeps: a terminal tells nobody when it has drawn

    do("new-session", "-d", "-s", "t", "-x", "80", "-y", "24", f"{TOOL} top {pid} --interval 0.2; echo ended; sleep 60")
    try:
        wait_for("a table", lambda lines: any(line.startswith("handler") for line in lines))
        do("send-keys", "-t", "t", "b")
        row = ["Slow::work"]
        wait_for("the busiest handler first", lambda lines: [line.split()[0] for line in lines[5:6] if line] == row)
        do("send-keys", "-t", "t", "Enter")
        wait_for("the actors of that class", lambda lines: any(line.split()[3:] == ["Slow", "&Slow::work"] for line in lines[5:]))
        do("send-keys", "-t", "t", "BSpace")
        wait_for("all handlers again", lambda lines: [line.split()[0] for line in lines[5:6] if line] == row)
        do("send-keys", "-t", "t", "n")
        wait_for("sorted by name", are_sorted)
        do("send-keys", "-t", "t", "l")
        wait_for("the longest mailbox", lambda lines: any("suspended" in line and "Grows" in line for line in lines))
        do("send-keys", "-t", "t", "m", "Enter")
        wait_for("the story of that actor", lambda lines: re.match(r'Grows "the tree" #\d+: suspended, \d+ messages in its mailbox, 1 suspended', lines[4]))
        wait_for("what it waits for", lambda lines: re.match(r" +1 +- +program.cpp:\d+ +&Grows::wait, ", lines[6]))
        do("send-keys", "-t", "t", "Escape")
        wait_for("the mailboxes again", lambda lines: lines[4].split()[:1] == ["id"])
        wait_for("by mail, which is marked", lambda lines: lines[4].split()[:2] == ["id", "*mail"])
        do("send-keys", "-t", "t", "Left")
        wait_for("by id", lambda lines: lines[4].split()[:2] == ["*id", "mail"])
        do("send-keys", "-t", "t", "l")
        wait_for("the handlers", lambda lines: lines[4].startswith("handler"))
        do("send-keys", "-t", "t", "Down", "Down", "a", "Up", "Up", "Up", "Enter")
        wait_for("100 of the class with most actors", lambda lines: len(lines) == 24 and all(line.split()[3:] in (["Quick", "&Quick::add"], ["Quick", "&Quick::fail"]) for line in lines[5:22]))
        do("send-keys", "-t", "t", "NPage", "NPage", "NPage", "NPage", "NPage", "NPage", "NPage", "NPage")
        wait_for("the end of the list", lambda lines: len(lines) > 21 and lines[21].split()[3:] == ["Quick", "&Quick::add"])
        do("send-keys", "-t", "t", "Escape", "v")
        wait_for("the warnings", lambda lines: any("&Slow::work of Slow" in line for line in lines))
        red = re.compile(r"\x1b\[[0-9;]*31m.*&Slow::work of Slow")
        wait_for("in red, a warning that holds", lambda lines: any(red.search(line) for line in lines), "-e")
        do("send-keys", "-t", "t", "Enter")
        wait_for("the whole text of a warning", lambda lines: any(re.match(r"\S+ times, first \S+ ago, last \S+ ago", line) for line in lines[6:]))
        do("send-keys", "-t", "t", "Enter")
        wait_for("its actor, or those of its class", lambda lines: re.match(r"(Slow|Grows).* #\d+: |.*\bid +\*?mail", lines[4]))
        do("send-keys", "-t", "t", "?")
        wait_for("the keys", lambda lines: lines[4].startswith("key ") and any(line.startswith("Left, Right") for line in lines))
        do("send-keys", "-t", "t", "?", "BSpace", "BSpace", "BSpace")
        wait_for("the handlers by actors", lambda lines: lines[4].split()[:3] == ["handler", "*alive", "msg/s"])
        do("send-keys", "-t", "t", "Right")
        wait_for("the next column sorts", lambda lines: lines[4].split()[:3] == ["handler", "alive", "*msg/s"])
        do("send-keys", "-t", "t", "Left", "Left", "Left")
        wait_for("round to the last one", lambda lines: lines[4].split()[-1] == "*fail")
        do("send-keys", "-t", "t", "i")
        wait_for("the timers", lambda lines: any(line.startswith("timer every ") for line in lines))
        do("send-keys", "-t", "t", "q")
        wait_for("the end", lambda lines: "ended" in lines)
        do("respawn-pane", "-k", "-t", "t", f"NO_COLOR=1 {TOOL} top {pid} --interval 0.2")
        do("send-keys", "-t", "t", "v")
        wait_for("the warnings without colours", lambda lines: any("&Slow::work of Slow" in line for line in lines)
                 and not any(re.search(r"\x1b\[[0-9;]*3[13]m", line) for line in lines), "-e")
    finally:
        do("kill-server")


def check_usage():
    """A wrong command line is answered by one sentence that says what to do."""
    for arguments, expected in (
            ([], "troupe: a command is missing: `troupe --help` lists the commands"),
            (["tpo"], "troupe: there is no command `troupe tpo` (did you mean top?): `troupe --help` lists the commands"),
            (["--once", "what"], "troupe: there is no command `troupe what`: `troupe --help` lists the commands"),
            (["--once"], "troupe: there is no option --once: `troupe --help` lists them"),
            (["store", FOLDER / "none", "sl"], "troupe: there is no command `troupe store sl` (did you mean ls?): `troupe store --help` lists the commands"),
            (["store", FOLDER / "none"], "troupe store: a command is missing: `troupe store --help` lists the commands"),
            (["help", "dmup"], "troupe: there is no command `troupe dmup` (did you mean dump?): `troupe --help` lists the commands"),
            (["top"], "troupe top: PID must be the number of a process: `troupe ps` lists the programs that can be asked"),
            (["dump", "x"], "troupe dump: PID must be the number of a process: `troupe ps` lists the programs that can be asked"),
            (["top", "1", "--sort", "luck"], "troupe top: --sort: luck not in {messages,busy,wait,alive,failures,name}: `troupe top --help` shows what it takes"),
            (["dump", "1", "--fast"], "troupe dump: The following argument was not expected: --fast: `troupe dump --help` shows what it takes")):
        said = tool(*arguments, code=2)
        check(f"{arguments}", said == expected + "\n", said)
    version = re.search(r"^ +VERSION (\S+)$", (pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "CMakeLists.txt").read_text(), re.M)[1]
    check("the version", tool("--version") == f"troupe {version}\n", tool("--version"))
    check("the help", tool("help") == tool("--help") and "store" in tool("help"), tool("help"))
    check("the help of a command", tool("help", "top") == tool("top", "--help") and "--sort" in tool("help", "top"), tool("help", "top"))


def check_refusals():
    tool("actors", 1, "--count", 0, code=2)
    said = tool("trace", 1, "1s", "-o", FOLDER / "none.json", code=1)
    check("no file of a program that cannot be asked", "TROUPE_OBSERVE=1" in said and not (FOLDER / "none.json").exists(), said)
    said = tool("dump", 1, code=1)
    check("it says what to do", "TROUPE_OBSERVE=1" in said, said)


def main():
    check_usage()
    check_refusals()
    observed, unseen = start(TROUPE_OBSERVE="1"), start(TROUPE_OBSERVE="0")
    sock = FOLDER / "troupe" / f"{observed.pid}.sock"
    check("the socket is the user's alone", stat.S_IMODE(sock.stat().st_mode) == 0o600, oct(sock.stat().st_mode))
    check("the other program has none", not (FOLDER / "troupe" / f"{unseen.pid}.sock").exists(), os.listdir(FOLDER / "troupe"))
    time.sleep(0.3)  # sleeps: the program does something meanwhile
    check_list(observed.pid)
    check_tables(observed.pid)
    check_no_terminal(observed.pid)
    check_actors(observed.pid)
    check_warnings(observed.pid)
    check_numbers(observed.pid)
    check_sums_rise(observed.pid)
    check_history(observed.pid)
    check_page(observed.pid)
    check_trace(observed.pid)
    check_log(observed.pid)
    check_terminal(observed.pid)
    for program in observed, unseen:
        messages = program.communicate(timeout=SECONDS_MAX)[0]
        check("the program ends", program.returncode == 0 and int(messages) > 20_000, messages)
    check("the socket is gone", not sock.exists(), sock)
    said = tool("dump", observed.pid, code=1)
    check("a program that has ended", "cannot be asked" in said, said)
    shutil.rmtree(FOLDER, ignore_errors=True)
    print("troupe: all is seen")


main()
