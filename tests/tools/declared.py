"""Each number that is declared has a name of its own, a help text, its unit and labels with a limited number of values; promtool finds no fault;
and docs/guide/metrics.md has the table of all.

declared.py PROGRAM          checks
declared.py PROGRAM write    writes the table
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM = sys.argv[1]
GUIDE = pathlib.Path(os.environ.get("TROUPE_SOURCE_DIR", ".")) / "docs/guide/metrics.md"
BEGIN, END = "<!-- numbers -->\n", "<!-- /numbers -->\n"
# Why each label has few values.
LIMITED = {
    "runtime": "runtimes of the process", "worker": "threads of the pool", "kind": "an enumeration", "source": "an enumeration",
    "operation": "an enumeration", "class": "classes of the program", "handler": "functions of the program", "lazy": "types of the program",
    "store": "what the program has opened", "server": "listeners", "node": "what the program has opened",
    "metric": "numbers that the program declares", "route": "routes of the program", "method": "methods of the routes, or OTHER",
    "status": "five classes", "reason": "an enumeration", "event": "an enumeration", "pool": "what the program has named",
    "cache": "what the program has named", "breaker": "what the program has named", "connection": "what the program has opened", "topic": "what the program has named",
    "exporter": "what the program has opened", "database": "what the program has opened", "statement": "at most 200, then (others)",
    "version": "one", "compiler": "one", "state": "an enumeration",
}


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}: {seen}")


def declared():
    done = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    return sorted(json.loads(done.stdout), key=lambda group: (group["prefix"], group["labels"]))


def tables(groups):
    numbers = sorted((one["metric"], one["kind"], group["labels"], one["help"]) for group in groups for one in group["numbers"])
    text = "\n| metric | kind | labels | meaning |\n|---|---|---|---|\n"
    for metric, kind, labels, says in numbers:
        text += f"| `{metric}` | {kind} | {', '.join(f'`{label}`' for label in labels) or '–'} | {says} |\n"
    return text


def check_each(groups):
    check("there are numbers", len(groups) > 10, groups)
    for name, count in collections.Counter(one["metric"] for group in groups for one in group["numbers"]).items():
        check("a name is declared once", count == 1, name)
    for group in groups:
        check("a label is limited", set(group["labels"]) <= set(LIMITED), group["labels"])
        members = [one["member"] for one in group["numbers"]]
        check("a member is one number", len(members) == len(set(members)), members)
        for one in group["numbers"]:
            name, unit = one["name"], one["unit"]
            check("a name", re.fullmatch(r"[a-z][a-z0-9_]*", name), one)
            check("help is a sentence", re.fullmatch(r"[A-Z0-9].*[^.]\.", one["help"]) and "|" not in one["help"], one)
            check("a name ends in its unit", not unit or re.search(rf"(^|_){unit}$", name), one)
            check("a unit is declared", unit or not re.search(r"(^|_)(seconds|bytes)$", name), one)
            check("only a counter is a total", one["metric"].endswith("_total") == (one["kind"] == "counter"), one)


def lint(groups):
    text = ""
    for group in groups:
        labels = ",".join(f'{label}="a"' for label in group["labels"])
        for one in group["numbers"]:
            name, more = one["metric"], "," if labels else ""
            text += f"# HELP {name} {one['help']}\n# TYPE {name} {one['kind']}\n"
            if one["kind"] == "histogram":
                text += f'{name}_bucket{{{labels}{more}le="+Inf"}} 1\n{name}_sum{{{labels}}} 1\n{name}_count{{{labels}}} 1\n'
            else:
                text += f"{name}{{{labels}}} 1\n"
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
    check("promtool", done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr)


def main():
    groups = declared()
    head, _, rest = GUIDE.read_text().partition(BEGIN)
    old, _, tail = rest.partition(END)
    if sys.argv[2:] == ["write"]:
        GUIDE.write_text(head + BEGIN + tables(groups) + "\n" + END + tail)
        return
    check_each(groups)
    if shutil.which("promtool"):
        lint(groups)
    else:
        print("declared: partly skipped: needs promtool")
    check("docs/guide/metrics.md has the table; write it with declared.py PROGRAM write", old == tables(groups) + "\n")
    print("declared: all numbers are declared well")


try:
    main()
except AssertionError as wrong:
    sys.exit(f"declared: {wrong}")
