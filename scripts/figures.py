#!/usr/bin/env python3
"""Puts the figures of a benchmark run into README.md, between its two marks.

Usage: ./bench --json FILE.json && scripts/figures.py FILE.json [DOCUMENT]

The last column says how many times better troupe's median is than the best rival's: below 1 it is worse.
"""

import json
import pathlib
import re
import sys

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
HEAD = ["row", "unit", "troupe", "floor", "best rival", "×"]


class Wrong(Exception):
    """What the caller gave does not fit; the text says what to do."""


def number(value):
    """Three significant digits, or all of the whole part."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def cell(summary):
    if summary is None:
        return "–"
    return f"{number(summary['median'])} ({number(summary['min'])} to {number(summary['max'])})"


def line(row):
    ours, less = row["troupe"], row["better"] == "less"
    best = ratio = "–"
    if row["peers"]:
        pick = min if less else max
        name = pick(row["peers"], key=lambda peer: row["peers"][peer]["median"])
        theirs = row["peers"][name]
        best = f"{name} {cell(theirs)}"
        above, below = (theirs, ours) if less else (ours, theirs)
        if ours is not None and below["median"] > 0:
            ratio = f"{above['median'] / below['median']:.2f}"
    return [f"`{row['row']}`", row["unit"], cell(ours), cell(row["floor"]), best, ratio]


def table(rows):
    marks = ["---", "---", "---:", "---:", "---:", "---:"]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [HEAD, marks, *map(line, rows)])


def put(text, rows):
    """The document with a new table. Exactly one pair of marks must be there."""
    pair = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}$", re.MULTILINE | re.DOTALL)
    if len(pair.findall(text)) != 1:
        raise Wrong(f"the document must have one line {BEGIN} and, behind it, one line {END}")
    return pair.sub(lambda _: f"{BEGIN}\n{table(rows)}{END}", text)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(__file__).resolve().parents[1]
    document = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else root / "README.md"
    try:
        rows = json.loads(pathlib.Path(sys.argv[1]).read_text())
        if not isinstance(rows, list) or not rows:
            raise Wrong(f"{sys.argv[1]} has no rows; it must come from ./bench --json")
        document.write_text(put(document.read_text(), rows))
    except (OSError, ValueError, KeyError, TypeError, Wrong) as wrong:
        print(f"figures: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
