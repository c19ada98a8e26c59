#!/usr/bin/env python3
"""Counts the order of a tree: cycles of includes, closures, casts, flags, labels, lines and public names.

Usage: scripts/order_figures.py             writes the column of this tree into docs/decisions/order.md
       scripts/order_figures.py show TREE   prints the figures of another checkout, by the rules of this one

The column of the tree before stays: its figures were printed by `show` from a checkout of the commit that the page names.
"""

import collections
import configparser
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/decisions/order.md"
BEGIN, END = "<!-- order -->", "<!-- /order -->"
CLOSURES = ("actor/mailbox/activation.hpp", "actor/system/actor_system.hpp")
FOLDERS = ("include", "src", "tests", "benches", "tools", "examples", "docs")
LINES_OF = (".hpp", ".h", ".cpp", ".py", ".md", ".txt", ".cmake", ".ini", ".sh")

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/tidy"))

import _headers  # noqa: E402
import api  # noqa: E402
import classes  # noqa: E402
import labels  # noqa: E402
import layers  # noqa: E402
import rooms  # noqa: E402

VOID_NAME = re.compile(r"\bvoid\s*\*\s*(?:const\s+)?(\w+)")
CAST = re.compile(r"static_cast<(?!void|const void)[^<>()]*(?:<[^<>]*>)?[^<>()]*\*>\((\w+)\)")


def closure(tree, header):
    """How many headers of the tree a header includes, with those that these include."""
    found, left = set(), [header]
    while left:
        name = left.pop()
        path = next((path for path in (tree / "src" / name, tree / "include" / name) if path.is_file()), None)
        if path is None or name in found:
            continue
        found.add(name)
        left += [match.group(2) for match in map(layers.INCLUDE.match, path.read_text().splitlines()) if match]
    return len(found) - 1


def header_named(tree, name):
    """A header may have moved to another folder of its layer."""
    if (tree / "src" / name).is_file():
        return name
    layer, file = name.split("/")[0], name.split("/")[-1]
    return next((path.relative_to(tree / "src").as_posix() for path in (tree / "src" / layer).rglob(file)), name)


def casts_of_void(paths):
    """Casts of a name that its file declares as a `void*`."""
    count = 0
    for path in paths:
        text = path.read_text()
        names = set(VOID_NAME.findall(text))
        count += sum(name in names for name in CAST.findall(text))
    return count


def lines_by_folder(tree):
    listed = subprocess.run(["git", "-C", tree, "ls-files", "-z"], capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else [str(path.relative_to(tree)) for path in tree.rglob("*")]
    counts = collections.Counter()
    for name in names:
        path = tree / name
        if name and name.split("/")[0] in FOLDERS and path.suffix in LINES_OF and path.is_file():
            counts[name.split("/")[0]] += len(path.read_bytes().splitlines())
    return counts


def public_names(tree):
    _headers.INCLUDE = tree / "include"
    return len(api.names())


def figures(tree):
    rooms.ROOT = labels.ROOT = classes.ROOT = tree
    lines = rooms.includes()[1]
    graphs = rooms.graphs()
    inside = [unit for cycle in rooms.cycles(graphs["unit"]) for unit in cycle]
    edges = {kind: len(rooms.feedback(graph)) for kind, graph in graphs.items()}
    checks = labels.checks()
    found = classes.read([(path.relative_to(tree).as_posix(), path.read_text()) for path in classes.sources()])
    flags = [len(entry.flags) for entry in found.values()]
    transitions = tree / "tests/faults/transitions.ini"
    parser = configparser.ConfigParser()
    parser.read_string(transitions.read_text() if transitions.is_file() else "")
    rows = {
        "units in cycles of includes": f"{len(inside)} of {len(lines)}",
        "lines of these units": f"{sum(lines[unit] for unit in inside):,} of {sum(lines.values()):,}",
        "includes that close a cycle between units": f"{edges['unit']}",
        "includes that close a cycle between rooms": f"{edges['room']}",
    }
    for name in CLOSURES:
        rows[f"headers that `{name.split('/')[-1]}` includes"] = f"{closure(tree, header_named(tree, name))}"
    rows |= {
        "casts from `void*`": f"{casts_of_void(list(rooms.sources()))}",
        "two-valued members that change": f"{sum(flags)} in {sum(1 for count in flags if count)} classes",
        "classes with more than three of them": f"{sum(1 for count in flags if count > classes.FLAGS_MAX)}",
        "lines of the largest class": f"{max(entry.size for entry in found.values()):,}",
        "labelled invariants that are checked": f"{sum(how is not None for how in checks.values())} of {len(checks)}",
        "wrong transitions that are planted": f"{len(parser.sections())}",
        "public names": f"{public_names(tree):,}",
    }
    counts = lines_by_folder(tree)
    rows |= {f"lines of `{folder}/`": f"{counts[folder]:,}" for folder in FOLDERS}
    return rows


def write(rows):
    text = DOCUMENT.read_text()
    before = text[text.index(BEGIN):text.index(END)]
    old = dict(re.findall(r"^\| (.+?) \| (.+?) \|", before, re.M))
    table = "".join(f"| {name} | {old.get(name, '–')} | {now} |\n" for name, now in rows.items())
    head = "| figure | before | now |\n|---|--:|--:|\n"
    DOCUMENT.write_text(text.replace(before, f"{BEGIN}\n{head}{table}"))


def main(words):
    if words[:1] == ["show"] and len(words) == 2:
        for name, value in figures(pathlib.Path(words[1]).resolve()).items():
            print(f"| {name} | {value} |")
        return 0
    if words:
        sys.exit(__doc__)
    write(figures(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
