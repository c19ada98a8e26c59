#!/usr/bin/env python3
"""Draws a picture of boxes and arrows, as SVG beside its text.

Usage: scripts/draw_picture.py docs/pictures/NAME.txt

The text has one item a line. Columns and rows count cells of a grid from 0.
    box NAME COLUMN ROW [WIDTH]     WIDTH in cells; the indented lines below are what stands in the box
    arrow FROM TO: WORDS            `both` instead of `arrow` draws two heads
    # a comment
"""

import html
import pathlib
import sys

CELL, HIGH, GAP_X, GAP_Y, MARGIN = 260, 84, 80, 52, 12
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" font-family="sans-serif">
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">\
<path d="M0 0L8 4L0 8z"/></marker></defs>
<rect width="{0}" height="{1}" fill="#fff"/>
"""


class Wrong(Exception):
    """What the text says cannot be drawn; the message names the line."""


class Box:
    def __init__(self, column, row, width):
        self.left, self.top = MARGIN + column * (CELL + GAP_X), MARGIN + row * (HIGH + GAP_Y)
        self.right, self.bottom = self.left + width * CELL + (width - 1) * GAP_X, self.top + HIGH
        self.lines = []


def parse(text):
    """The boxes by name, and the arrows as (from, to, words, both)."""
    boxes, arrows, last = {}, [], None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        try:
            if line.startswith(" "):
                last.lines.append(line.strip())
            elif words[0] == "box":
                last = boxes[words[1]] = Box(*map(int, words[2:4]), int(words[4]) if len(words) > 4 else 1)
            elif words[0] in ("arrow", "both"):
                ends, _, said = line.partition(":")
                _, start, end = ends.split()
                arrows.append((boxes[start], boxes[end], said.strip(), words[0] == "both"))
            else:
                raise ValueError
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise Wrong(f"line {number} is no box, arrow or text in a box, or names a box that is not above it: {line}")
    return boxes, arrows


def meet(a_low, a_high, b_low, b_high):
    """Where two stretches overlap, the middle of that; else None."""
    low, high = max(a_low, b_low), min(a_high, b_high)
    return (low + high) / 2 if low < high else None


def ends_of(start, end):
    """Where an arrow leaves one box and reaches the other."""
    if (x := meet(start.left, start.right, end.left, end.right)) is not None:
        return (x, start.bottom, x, end.top) if start.top < end.top else (x, start.top, x, end.bottom)
    if (y := meet(start.top, start.bottom, end.top, end.bottom)) is not None:
        return (start.right, y, end.left, y) if start.left < end.left else (start.left, y, end.right, y)
    x_start, x_end = (start.left, end.right) if start.left > end.left else (start.right, end.left)
    y_start, y_end = (start.bottom, end.top) if start.top < end.top else (start.top, end.bottom)
    return x_start, y_start, x_end, y_end


def label(x, y, words, size, bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="middle"{weight}>{html.escape(words)}</text>\n'


def draw(text):
    boxes, arrows = parse(text)
    wide = max(box.right for box in boxes.values()) + MARGIN
    out = [HEAD.format(wide, max(box.bottom for box in boxes.values()) + MARGIN)]
    for box in boxes.values():
        out.append(f'<rect x="{box.left}" y="{box.top}" width="{box.right - box.left}" height="{HIGH}" rx="6" '
                   'fill="#f2f5fa" stroke="#345"/>\n')
        first = (box.top + box.bottom) / 2 - 9 * (len(box.lines) - 1) + 5
        for i, line in enumerate(box.lines):
            out.append(label((box.left + box.right) / 2, first + 18 * i, line, 14 if i else 15, bold=i == 0))
    for start, end, words, both in arrows:
        x1, y1, x2, y2 = ends_of(start, end)
        back = ' marker-start="url(#head)"' if both else ""
        out.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="#000" marker-end="url(#head)"{back}/>\n')
        x, y, half = (x1 + x2) / 2, (y1 + y2) / 2, 3.2 * len(words) + 4
        level = y1 == y2
        y -= 14 if level else 0
        out.append("" if level else f'<rect x="{x - half:g}" y="{y - 10:g}" width="{2 * half:g}" height="18" fill="#fff"/>\n')
        out.append(label(x, y + 4, words, 12))
    return "".join(out) + "</svg>\n"


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    source = pathlib.Path(sys.argv[1])
    try:
        source.with_suffix(".svg").write_text(draw(source.read_text()))
    except Wrong as why:
        print(f"draw_picture.py: {source}: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
