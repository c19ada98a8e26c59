"""The documents against the code: the ways of docs/ways.md, the table of layers of docs/architecture.md, the relaxed
orders of docs/protocols/relaxed_orders.md, all pictures."""

import importlib.util
import json
import pathlib
import re

import layers

ARCHITECTURE = pathlib.Path("docs/architecture.md")
DOCUMENT = pathlib.Path("docs/ways.md")
SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/draw_picture.py"
FIGURES = SCRIPT.with_name("figures.py")

# A section of `## The ways` is a way. The text below its heading begins with its limit; a step is a numbered item.
WAYS = "## The ways"
LIMIT = re.compile(r"At most (\d+) files\.")
STEP = re.compile(r"(\d+)\. ")
# In a step: a file of ours that is linked, or the name of one that was linked before in this way, or a function of the
# file that was named last.
NAMED = re.compile(r"\]\(\.\./((?:include|src)/[^)#]+)\)|`([\w.]+\.[hc]pp)`|`([\w:~]+)\(\)`")
# A page that has an argument for each atomic object that its files read or write with a relaxed order.
RELAXED = pathlib.Path("docs/protocols/relaxed_orders.md")
FILE_OF_RELAXED = re.compile(r"(?:src|include)/[\w/]+\.[hc]pp")
RELAXED_ACCESS = re.compile(r"(\w+)(?:\[[^\]]*\])?\s*(?:\.|->)(?:load|store|exchange|fetch_\w+|compare_exchange_\w+)"
                            r"\([^;]*?memory_order_relaxed")
ROW = re.compile(r"\| \[?`(\w+)`(?:\]\(([^)]*)\))? \| ([^|]*) \|")


def steps_of(lines):
    """(line number of the way's heading, heading, limit or None, [(line number, text of a step)]) of each way."""
    found, inside = [], False
    for number, line in enumerate(lines, 1):
        if line.startswith("## "):
            inside = line == WAYS
        elif inside and line.startswith("### "):
            found.append([number, line[4:], None, []])
        elif inside and found:
            way = found[-1]
            if (limit := LIMIT.match(line)) and way[2] is None:
                way[2] = int(limit.group(1))
            elif STEP.match(line):
                way[3].append([number, line])
            elif line.startswith("   ") and way[3]:
                way[3][-1][1] += "\n" + line
    return found


def check_ways(tree):
    if not (tree.root / DOCUMENT).is_file():
        return [f"{DOCUMENT}: is missing"]
    ways = steps_of(tree.lines(DOCUMENT))
    problems = [] if ways else [f"{DOCUMENT}: has no way below `{WAYS}`"]
    for number, heading, limit, steps in ways:
        files = set()
        for at, text in steps:
            problems += _problems_of_step(tree, at, text, files)
        if limit is None:
            problems.append(f"{DOCUMENT}:{number}: `{heading}` has no line `At most N files.`")
        elif len(files) > limit:
            problems.append(f"{DOCUMENT}:{number}: `{heading}` names {len(files)} files, at most {limit}: "
                            + ", ".join(sorted(files)))
        if not steps:
            problems.append(f"{DOCUMENT}:{number}: `{heading}` has no steps")
    return problems


def _problems_of_step(tree, at, text, files):
    named, functions, file = 0, 0, None
    for found in NAMED.finditer(text):
        line = at + text.count("\n", 0, found.start())
        linked, again, function = found.groups()
        if function:
            functions += 1
            name = function.split("::")[-1]
            if file and not re.search(rf"(?<![\w~]){re.escape(name)}\b", "\n".join(tree.lines(file))):
                yield f"{DOCUMENT}:{line}: {file} has no {function}()"
            continue
        named += 1
        file = linked or next((one for one in sorted(files) if pathlib.Path(one).name == again), None)
        if file is None:
            yield f"{DOCUMENT}:{line}: the way has not linked {again} before"
        elif not (tree.root / file).is_file():
            yield f"{DOCUMENT}:{line}: the step names {file}, which does not exist"
            file = None
        else:
            files.add(file)
    if not named:
        yield f"{DOCUMENT}:{at}: the step names no file"
    if not functions:
        yield f"{DOCUMENT}:{at}: the step names no function (`name()`)"


def check_layer_table(tree):
    """The table of layers says what the build does: each layer with a link to its README, and with those on which it stands."""
    if not (tree.root / ARCHITECTURE).is_file():
        return [f"{ARCHITECTURE}: is missing"]
    rows = {row.group(1): (number, row.group(2), re.findall(r"`(\w+)`", row.group(3)))
            for number, line in enumerate(tree.lines(ARCHITECTURE), 1) if (row := ROW.match(line))}
    problems = [f"{ARCHITECTURE}: the table of layers has no row `{layer}`" for layer in layers.BELOW if layer not in rows]
    for layer, (number, link, below) in rows.items():
        if layer not in layers.BELOW:
            problems.append(f"{ARCHITECTURE}:{number}: `{layer}` is no layer of tests/tidy/layers.py")
        elif below != layers.BELOW[layer]:
            problems.append(f"{ARCHITECTURE}:{number}: `{layer}` stands on {', '.join(layers.BELOW[layer]) or 'nothing'}")
        elif link != f"../src/{layer}/README.md":
            problems.append(f"{ARCHITECTURE}:{number}: `{layer}` does not link to src/{layer}/README.md")
    return problems


def check_relaxed_orders(tree):
    lines = tree.lines(RELAXED)
    page = "\n".join(lines)
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    head = page.split("\n\n")[1]
    problems = []
    for file in dict.fromkeys(FILE_OF_RELAXED.findall(head)):
        text = "\n".join(tree.lines(pathlib.Path(file)))
        missing = sorted({found[1] for found in RELAXED_ACCESS.finditer(text)} - named)
        problems += [f"{RELAXED}: has no argument for the relaxed accesses to `{name}` in {file}" for name in missing]
    return problems


def _script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_pictures(tree):
    """Each picture is what scripts/draw_picture.py makes of the text beside it, or scripts/figures.py of the figures."""
    draw_picture, figures = _script(SCRIPT), _script(FIGURES)
    problems, of_figures = [], {}
    if (tree.root / figures.KEPT).exists():
        kept = json.loads((tree.root / figures.KEPT).read_text())
        of_figures = figures.pictures(kept)
        if figures.run_of_picture(kept) not in (tree.root / figures.DOCUMENT).read_text().splitlines():
            problems.append(f"{figures.DOCUMENT}: names another run than {figures.KEPT}; run scripts/figures.py draw")
    for path, drawn in of_figures.items():
        if not (tree.root / path).exists() or (tree.root / path).read_text() != drawn:
            problems.append(f"{path}: is not what {figures.KEPT} says; run scripts/figures.py draw")
    for path in tree.files("docs", suffixes=(".svg",)):
        if str(path) in of_figures:
            continue
        source = path.with_suffix(".txt")
        try:
            drawn = draw_picture.draw((tree.root / source).read_text())
        except (OSError, draw_picture.Wrong) as why:
            problems.append(f"{path}: cannot be drawn from {source}: {why}")
            continue
        if drawn != (tree.root / path).read_text():
            problems.append(f"{path}: is not what {source} says; run scripts/draw_picture.py {source}")
    return problems
