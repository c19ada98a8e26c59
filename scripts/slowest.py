"""Shows what took most CPU time in a run, beside what it took the last time.

Usage: slowest.py BUILD NAME...

BUILD is the folder of all configurations, NAME one that was built and tested; the figures are those
that supervise.py wrote into its log. BUILD/figures.json has the last ones. A report: machines differ,
and nothing fails because of a figure.
"""

import json
import pathlib
import re
import sys

SHOWN = 10
TITLES = {"units": "slowest units", "suites": "slowest suites"}


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def short(name):
    """An object file is known by its source."""
    return re.sub(r"(?:^|.*/)CMakeFiles/([^/]*)\.dir/(.*)\.o$", r"\1 \2", name)


def lines(kind, now, last):
    """A table of the slowest, or nothing when nothing ran."""
    slowest = sorted(now, key=now.get, reverse=True)[:SHOWN]
    if not slowest:
        return []
    shown = [f"{TITLES[kind]}, seconds of CPU time (the last time):"]
    for name in slowest:
        before = f"({last[name]:.1f})" if name in last else "(-)"
        shown.append(f"{now[name]:8.1f} {before:>8}  {name}")
    return shown


def main():
    build = pathlib.Path(sys.argv[1])
    kept = build / "figures.json"
    figures = read(kept)
    for kind in TITLES:
        now = {}
        for name in sys.argv[2:]:
            for part in sorted(build.glob(f"{name}/log/{kind}*.json")):
                now.update({f"{name} {short(what)}": spent for what, spent in read(part).items()})
        last = figures.setdefault(kind, {})
        print("\n".join(lines(kind, now, last)), end="\n" if now else "")
        last.update(now)
    kept.write_text(json.dumps(figures, indent=0, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
