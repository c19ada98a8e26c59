"""The documents against the code: the ways of docs/ways.md and their counts, the table of layers of docs/architecture.md, the relaxed
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
# The ways that were counted from runs (tests/instructions/ways.py), and the table that shows the counts.
COUNTED = pathlib.Path("tests/instructions/ways.txt")
COUNTED_WAY = re.compile(r"way (\S+): (\d+) functions in (\d+) files, aim (\d+) in (\d+)")
COUNTED_ROW = re.compile(r"\| \[`([\w.]+)`\]\(#([\w-]+)\) \| (\d+) \| (\d+) \| (\d+) \| (\d+) in (\d+) \|")
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


def counted_ways(tree):
    """{way: (the five numbers of its line, {file: functions})} of the counted ways."""
    found, at = {}, {}
    for line in tree.lines(COUNTED):
        if way := COUNTED_WAY.fullmatch(line):
            at = {}
            found[way[1]] = [int(number) for number in way.groups()[1:]], at
        elif line.startswith("  "):
            file, _, functions = line.strip().partition(": ")
            at[file] = functions.split()
    return found


def check_counted_ways(tree):
    """The counted functions are those of the files, and the table of docs/ways.md shows the counts."""
    ways = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): steps for _, heading, _, steps in steps_of(tree.lines(DOCUMENT))}
    rows = {row[1]: (number, row[2], [int(cell) for cell in row.groups()[2:]])
            for number, line in enumerate(tree.lines(DOCUMENT), 1) if (row := COUNTED_ROW.match(line))}
    problems, counted = [], counted_ways(tree)
    for way, (numbers, files) in counted.items():
        for file, functions in files.items():
            if not (tree.root / file).is_file():
                problems.append(f"{COUNTED}: `{way}` visits {file}, which does not exist")
                continue
            text = "\n".join(tree.lines(file))
            problems += [f"{COUNTED}: `{way}` visits {name}() of {file}, which is not there" for name in functions
                         if not re.search(rf"(?<![\w~]){re.escape(name)}\b", text)]
        if numbers[:2] != [sum(map(len, files.values())), len(files)]:
            problems.append(f"{COUNTED}: `{way}` has {sum(map(len, files.values()))} functions in {len(files)} files")
        if way not in rows:
            problems.append(f"{DOCUMENT}: the table of counted ways has no row `{way}`")
            continue
        number, heading, shown = rows[way]
        if heading not in ways:
            problems.append(f"{DOCUMENT}:{number}: `{way}` is no way of the page: #{heading}")
            continue
        named = {found[1] for _, text in ways[heading] for found in NAMED.finditer(text) if found[1]}
        is_so = [*numbers[:2], len(named & files.keys()), *numbers[2:]]
        if shown != is_so:
            problems.append(f"{DOCUMENT}:{number}: the row `{way}` has the numbers {shown}, and the counts are {is_so}")
    problems += [f"{DOCUMENT}:{number}: `{way}` is not counted" for way, (number, _, _) in rows.items() if way not in counted]
    return problems


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
