"""The slices of `./test --deep`: tests/slices.ini, which says what its words mean.

Usage: slices.py list            a table of all
       slices.py expand WORD     the slices of that name, or of that turn (the word before the dot)
       slices.py next            the slice that is next, by the history
       slices.py show NAME       a line each: configuration, suites, how often it passed, environments
       slices.py record NAME yes|no   that it has passed beside a load, or has not

Which slice is next. Nobody counts landings, but the history shows when work on it rested: each hour
without a commit begins a new landing. The number of such hours chooses the turn, so that landings
that follow each other, with an hour between them, take all turns one after the other. How often that
has gone round chooses the slice of the turn. A history that is not there (an archive, a shallow clone)
is replaced by the date.
"""

import configparser
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests/slices.ini"
TURNS_MAX = 10
REST_S = 3600


def read(file=FILE):
    slices = configparser.ConfigParser(interpolation=None)
    slices.read_string(file.read_text())
    return slices


def turns(slices):
    """The names of each turn, in the order of the file."""
    found = {}
    for name in slices.sections():
        found.setdefault(name.split(".")[0], []).append(name)
    return found


def expand(slices, word):
    """A slice of that name, or all of that turn."""
    return [word] if word in slices else turns(slices).get(word, [])


def landings(seconds):
    """How many there were, by the times of all commits, oldest first."""
    return sum(1 for before, after in zip(seconds, seconds[1:]) if after - before > REST_S)


def history():
    shallow = subprocess.run(["git", "-C", ROOT, "rev-parse", "--is-shallow-repository"],
                             capture_output=True, text=True).stdout.strip()
    if shallow != "false":
        return []
    shown = subprocess.run(["git", "-C", ROOT, "log", "--first-parent", "--reverse", "--format=%ct"],
                           capture_output=True, text=True).stdout
    return [int(second) for second in shown.split()]


def choose(slices, number):
    """The slice of the landing of this number."""
    by_turn = list(turns(slices).values())
    names = by_turn[number % len(by_turn)]
    return names[number // len(by_turn) % len(names)]


def environments(slices, name):
    """One for each process, as words NAME=VALUE; at least one, which may be empty."""
    return [line.strip() for line in slices[name].get("environment", "").strip().split("\n")]


def record(name, has_passed, file=FILE):
    """How often in a row it has passed, after this time."""
    passed = read(file)[name].getint("passed") + 1 if has_passed else 0
    text = file.read_text()
    section = re.compile(rf"(^\[{re.escape(name)}\]\n(?:(?!\[).*\n)*?passed = )\d+$", re.MULTILINE)
    file.write_text(section.sub(rf"\g<1>{passed}", text))
    return passed


def show(slices, name):
    one = slices[name]
    print(one["in"], one["suites"], one["passed"], *environments(slices, name), sep="\n")


def main():
    words = sys.argv[1:]
    slices = read()
    if words == ["list"]:
        for name in slices.sections():
            one = slices[name]
            print(f"{name:24} {one['in']:8} passed {one['passed']:>2}  {one['suites']}")
    elif words == ["next"]:
        seconds = history()
        print(choose(slices, landings(seconds) if seconds else int(time.time()) // 86400))
    elif len(words) == 2 and words[0] == "expand":
        print("\n".join(expand(slices, words[1])))
    elif len(words) == 2 and words[0] == "show":
        show(slices, words[1])
    elif len(words) == 3 and words[0] == "record":
        print(record(words[1], words[2] == "yes"))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
