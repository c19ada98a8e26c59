"""Each labelled invariant in the head of a file is checked: by an assertion of the checked build that cites the label, in the unit or
elsewhere in its folder, or in any folder if it cites the unit's name as well ("waiting.S1"); or by a model in tests/models that
names the label, and that includes the unit's header or one of the same folder that the unit includes. labels.txt lists the others: those of which it says why no program can check them, at most REASONS_MAX, and those that are not checked yet, which only
get fewer.

labels.py          checks
labels.py show     prints how each label is checked
labels.py write    writes the list anew; reasons are kept
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = pathlib.Path(__file__).resolve().parent / "labels.txt"
REASONS_MAX = 20
HEAD = """# Labelled invariants that neither an assertion nor a model checks (labels.py), and the reason of those that no program can check:
# UNIT LABEL [reason]
"""

BEGIN = re.compile(r"\s*// Invariants?\b:?")
LABEL = re.compile(r"\s*//\s+(?:Invariant )?([A-Z]{1,2}\d{1,2})(?:  +|: )\S")
INLINE = re.compile(r"\s*// Invariant ([A-Z]{1,2}\d{1,2}): ")
ASSERTED = re.compile(r'TROUPE_(?:INVARIANT|REQUIRE)\((?:[^;]|;(?=[^\n]))*?"((?:[a-z]\w*\.)?[A-Z]{1,2}\d{1,2})"\)')
RANGE = re.compile(r"\b([A-Z]{1,2})(\d{1,2}) to \1(\d{1,2})\b")
NAMED = re.compile(r"\b[A-Z]{1,2}\d{1,2}\b")
INCLUDED = re.compile(r'^#include "([\w/.]+)"', re.MULTILINE)


def sources():
    for folder in (ROOT / "include" / "troupe", ROOT / "src"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".hpp", ".cpp") and not re.search(r"\.(test|model|bench)\.", path.name):
                yield path


def unit_of(path):
    """`include/troupe/task/task.hpp` and `src/task/task.cpp` are one unit, `task/task`."""
    base = ROOT / "include" / "troupe" if path.is_relative_to(ROOT / "include") else ROOT / "src"
    return path.relative_to(base).with_suffix("").as_posix()


def without_suffix(header):
    return pathlib.PurePath(header.removeprefix("troupe/")).with_suffix("").as_posix()


def labels_in(text):
    found, inside = [], False
    for line in text.splitlines():
        if single := INLINE.match(line):
            found.append(single.group(1))
        elif BEGIN.match(line):
            inside = True
        elif not line.lstrip().startswith("//"):
            inside = False
        elif inside and (label := LABEL.match(line)):
            found.append(label.group(1))
    return found


def read():
    """The labels of each unit, the labels that the assertions of each unit cite, and the units that it includes."""
    labels, asserted, includes = (collections.defaultdict(kind) for kind in (dict, set, set))
    for path in sources():
        text = path.read_text()
        for label in labels_in(text):
            labels[unit_of(path)][label] = path
        asserted[unit_of(path)] |= set(ASSERTED.findall(text))
        includes[unit_of(path)] |= {without_suffix(header) for header in INCLUDED.findall(text)}
        # The sources of a header may lie in another folder: they include it first.
        if path.suffix == ".cpp" and (first := INCLUDED.search(text)):
            asserted[without_suffix(first.group(1))] |= set(ASSERTED.findall(text))
    return labels, asserted, includes


def modelled():
    """For each header that a model includes, the models with the labels that they name."""
    found = collections.defaultdict(list)
    for path in [*sorted((ROOT / "tests" / "models").rglob("*.cpp")), *sorted((ROOT / "src").rglob("*.model.cpp"))]:
        text = path.read_text()
        named = set(NAMED.findall(text))
        for letter, first, last in RANGE.findall(text):
            named |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
        for header in INCLUDED.findall(text):
            found[without_suffix(header)].append((path, named))
    return found


def checks():
    """(unit, label): how it is checked, or None."""
    labels, asserted, includes = read()
    models = modelled()
    found = {}
    for unit, own in labels.items():
        folder = str(pathlib.PurePath(unit).parent)
        for label in own:
            # Another unit with a label of that name means its own.
            near = [other for other in asserted if str(pathlib.PurePath(other).parent) == folder and label not in labels.get(other, {})]
            # The same for the units of this folder that it includes, and whose models may check its labels.
            beside = {other for other in includes[unit] if str(pathlib.PurePath(other).parent) == folder and label not in labels.get(other, {})}
            how = None
            if label in asserted[unit]:
                how = "an assertion"
            elif others := [other for other in near if label in asserted[other]]:
                how = f"an assertion of {others[0]}"
            elif cited := [other for other in asserted if f"{pathlib.PurePath(unit).name}.{label}" in asserted[other]]:
                how = f"an assertion of {cited[0]}"
            elif by := [path for header in (unit, *sorted(beside)) for path, named in models[header] if label in named]:
                how = f"the model {by[0].stem}"
            found[unit, label] = how
    return found


def known():
    listed = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            unit, label, *reason = line.split(" ", 2)
            listed[unit, label] = reason[0] if reason else ""
    return listed


def compare(found, listed):
    problems = []
    for (unit, label), how in found.items():
        if how is None and (unit, label) not in listed:
            problems.append(f"{unit}: nothing checks {label}: cite it in a TROUPE_INVARIANT, or name it in a model")
    for unit, label in listed:
        if (unit, label) not in found:
            problems.append(f"labels.txt: {unit} has no {label} any more; run labels.py write")
        elif found[unit, label] is not None:
            problems.append(f"labels.txt: {found[unit, label]} checks {label} of {unit}; run labels.py write")
    units = {f"{pathlib.PurePath(unit).name}.{label}" for unit, label in found}
    for unit, cited in read()[1].items():
        problems += [f"{unit}: its assertion cites {name}, which no unit has" for name in sorted(cited) if "." in name and name not in units]
    reasons = sum(1 for reason in listed.values() if reason)
    if reasons > REASONS_MAX:
        problems.append(f"labels.txt: {reasons} labels have a reason why no program can check them, at most {REASONS_MAX} may")
    return problems


def main(words):
    found = checks()
    listed = known() if LIST.is_file() else {}
    if words == ["show"]:
        for (unit, label), how in found.items():
            print(f"{unit} {label}: {how or listed.get((unit, label)) or 'not checked yet'}")
        return 0
    if words == ["write"]:
        lines = [f"{unit} {label} {listed.get((unit, label), '')}".rstrip() for (unit, label), how in found.items() if how is None]
        LIST.write_text(HEAD + "".join(line + "\n" for line in sorted(lines)))
        return 0
    problems = compare(found, listed)
    open_ones = sum(1 for how in found.values() if how is None)
    print("\n".join(problems) or f"labels: {len(found) - open_ones} of {len(found)} are checked")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
