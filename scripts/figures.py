#!/usr/bin/env python3
"""Puts the figures of a benchmark run into docs/figures.md, between its two marks, and draws README's picture of them.

Usage: ./bench --json FILE.json && scripts/figures.py FILE.json [DOCUMENT]
       scripts/figures.py draw [FILE.json]      only the picture, of that run or of docs/pictures/figures.json

The last column says how many times better troupe's median is than the best rival's: below 1 it is worse.
A run that has all rows of the picture (PICTURED), with its machine and its commit, is also kept in
docs/pictures/figures.json, and drawn for light and for dark pages. docs/figures.md names both below its table.
"""

import html
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
HEAD = ["row", "unit", "troupe", "floor", "best rival", "×"]
KEPT = "docs/pictures/figures.json"
DOCUMENT = "docs/figures.md"
RUN_OF_PICTURE = re.compile(r"^README's picture shows one run: .*$", re.MULTILINE)

# Less is better in all of them, so that the shortest bar wins everywhere.
PICTURED = {
    "actor/ping_pong@2": "message and its answer",
    "actor/counting@2": "message to one actor",
    "actor/fork_join_create@2": "actor: spawn, message, end",
    "actor/big@2": "ping among 120 actors",
    "actor/idle_memory": "memory of an idle actor",
    "coro/ask@2": "ask, awaited",
    "coro/spawn@2": "task: spawn and join",
    "task/fib@2": "fork of two calls",
    "context/request": "200 objects, then freed",
    "io/http_plaintext_cpu": "CPU of an HTTP answer",
}
RIVALS_MAX = 3
WIDTH, LABEL, BARS, BAR, GAP, TOP = 760, 232, 330, 13, 12, 52
COLOURS = {
    "light": {"back": "#ffffff", "text": "#1f2328", "faint": "#59636e", "ours": "#0969da", "theirs": "#afb8c1"},
    "dark": {"back": "#0d1117", "text": "#f0f6fc", "faint": "#9198a1", "ours": "#4493f8", "theirs": "#4a525c"},
}


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


# ---- the picture -----------------------------------------------------------------------------------


def bars_of(row):
    """Ours, then the best rivals, as (name, median)."""
    rivals = sorted(((name, peer["median"]) for name, peer in row["peers"].items()), key=lambda rival: rival[1])
    return [("troupe", row["troupe"]["median"]), *rivals[:RIVALS_MAX]]


def words(x, y, size, fill, said, anchor="start"):
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{html.escape(said)}</text>\n'


def row_of(row, top, colours):
    """A row's label and bars, and where the next row begins."""
    bars = bars_of(row)
    longest = max(value for _, value in bars)
    made = words(LABEL - 12, top + BAR - 2, 13, colours["text"], PICTURED[row["row"]], "end")
    made += words(LABEL - 12, top + 2 * BAR, 11, colours["faint"], row["unit"], "end")
    for at, (name, value) in enumerate(bars):
        y, is_ours = top + at * (BAR + 2), name == "troupe"
        width = max(2, round(BARS * value / longest))
        made += f'<rect x="{LABEL}" y="{y}" width="{width}" height="{BAR}" rx="2" fill="{colours["ours" if is_ours else "theirs"]}"/>\n'
        made += words(LABEL + width + 6, y + BAR - 2, 11, colours["text" if is_ours else "faint"], f"{name} {number(value)}")
    return made, top + max(2, len(bars)) * (BAR + 2) + GAP


def drawn(kept, colours):
    """The picture as SVG."""
    rows = {row["row"]: row for row in kept["rows"]}
    made, top = "", TOP
    for name in PICTURED:
        part, top = row_of(rows[name], top, colours)
        made += part
    title = words(12, 22, 15, colours["text"], "Cost of one operation: a shorter bar is better")
    title += words(12, 40, 11, colours["faint"], f"{kept['machine']}; commit {kept['commit']}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" '
            f'font-family="sans-serif">\n<rect width="{WIDTH}" height="{top}" fill="{colours["back"]}"/>\n{title}{made}</svg>\n')


def pictures(kept):
    """The text of each picture, by its path."""
    return {f"docs/pictures/figures_{name}.svg": drawn(kept, colours) for name, colours in COLOURS.items()}


def keep(figures, root):
    """Keeps the rows of the picture; returns the names of those that the run lacks, with which nothing is kept."""
    rows = [row for row in figures["rows"] if row["row"] in PICTURED and row["troupe"] and row["peers"]]
    missing = sorted(set(PICTURED) - {row["row"] for row in rows})
    if missing:
        return missing
    kept = {"machine": figures["machine"], "commit": figures["commit"], "rows": rows}
    (root / KEPT).write_text(json.dumps(kept, indent=1) + "\n")
    return []


def run_of_picture(kept):
    """The line that tells readers of the table which run the picture shows: the table has rows of several."""
    return f"README's picture shows one run: {kept['machine']}; commit {kept['commit']}."


def draw(root):
    kept = json.loads((root / KEPT).read_text())
    for path, text in pictures(kept).items():
        (root / path).write_text(text)
    document = (root / DOCUMENT).read_text()
    if len(RUN_OF_PICTURE.findall(document)) != 1:
        raise Wrong(f"{DOCUMENT} must have one line like: {run_of_picture(kept)}")
    (root / DOCUMENT).write_text(RUN_OF_PICTURE.sub(lambda _: run_of_picture(kept), document))


def read(file):
    figures = json.loads(pathlib.Path(file).read_text())
    if not isinstance(figures, dict) or not figures.get("rows"):
        raise Wrong(f"{file} has no rows; it must come from ./bench --json")
    return figures


def act(arguments):
    if arguments[0] != "draw":
        figures = read(arguments[0])
        document = pathlib.Path(arguments[1]) if len(arguments) == 2 else ROOT / DOCUMENT
        document.write_text(put(document.read_text(), figures["rows"]))
        keep(figures, ROOT)
    elif len(arguments) == 2 and (missing := keep(read(arguments[1]), ROOT)):
        raise Wrong(f"{arguments[1]} lacks rows of the picture, or their rivals: {', '.join(missing)}")
    draw(ROOT)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        act(sys.argv[1:])
    except (OSError, ValueError, KeyError, TypeError, Wrong) as wrong:
        print(f"figures: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
