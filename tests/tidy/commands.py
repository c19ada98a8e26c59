"""docs/protocols/commands.md against the code: each table has a row for each command of the type that its line names, and no other."""

import pathlib
import re

DOCUMENT = pathlib.Path("docs/protocols/commands.md")
HELD = re.compile(r"(Subjects|Enumerators|Virtual functions|Members): `(\w+)` in \[[\w.]+\]\(\.\./\.\./([\w/.]+)\)\.")
HEAD = "| command | sender | receiver | it carries | it may meet |"
ROW = re.compile(r"\| `(\w+)` ((?:\| [^|]*[^|\s] ){4})\|$")


def _body(text, head):
    """Between the braces behind `head`; comments are left out."""
    text = re.sub(r"//[^\n]*", "", text)
    found = re.search(head, text)
    if not found:
        return None
    depth = 0
    for at in range(found.end() - 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[found.end():at]
    return None


def _without_blocks(body):
    """The declarations of a class, without the bodies of its functions and of its own types."""
    kept, depth = [], 0
    for letter in body:
        depth -= letter == "}"
        if depth == 0:
            kept.append("};" if letter == "}" else letter)
        depth += letter == "{"
    return "".join(kept)


def commands_of(text, kind, name):
    """The names of the commands, or None if the text has no such type."""
    body = _body(text, rf"\benum class {name}\b[^{{;]*{{" if kind == "Enumerators" else rf"\b(?:class|struct) {name}\b[^{{;]*{{")
    if body is None:
        return None
    if kind == "Enumerators":
        return re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip())
    if kind == "Subjects":
        return re.findall(r"std::string (\w*subject\w*)\(", body)
    declared = [re.sub(r"\s+", " ", line).strip() for line in _without_blocks(body).split(";")]
    if kind == "Virtual functions":
        return [found[1] for line in declared if (found := re.search(r"\bvirtual [^~(]*?(\w+)\(", line))]
    return [found[1] for line in declared
            if not line.startswith("struct ") and (found := re.fullmatch(r"[\w:<>, *]+ (\w+)(?: = .*|\{\})?", line))]


def check_commands(tree):
    if not (tree.root / DOCUMENT).is_file():
        return [f"{DOCUMENT}: is missing"]
    problems, held, rows, tables = [], None, [], 0

    def end_of_section(number):
        if held is None:
            return
        kind, name, file = held
        listed = [row for _, row in rows]
        path = tree.root / file
        found = commands_of(path.read_text(), kind, name) if path.is_file() else None
        if not found:
            problems.append(f"{DOCUMENT}:{number}: {file} has no commands in `{name}`")
            return
        problems.extend(f"{DOCUMENT}:{number}: has no row for `{one}` of `{name}` in {file}" for one in found if one not in listed)
        problems.extend(f"{DOCUMENT}:{at}: `{row}` is no command of `{name}` in {file}" for at, row in rows if row not in found)
        problems.extend(f"{DOCUMENT}:{at}: `{row}` has two rows" for i, (at, row) in enumerate(rows) if row in listed[:i])

    begin = 0
    for number, line in enumerate(tree.lines(DOCUMENT), 1):
        if line.startswith("## "):
            end_of_section(begin)
            held, rows, begin = None, [], number
        elif found := HELD.fullmatch(line):
            held, tables = found.groups(), tables + 1
        elif line.startswith("| `"):
            if row := ROW.match(line):
                rows.append((number, row[1]))
            else:
                problems.append(f"{DOCUMENT}:{number}: is no row of five cells that say something")
        elif line.startswith("| ") and line != HEAD:
            problems.append(f"{DOCUMENT}:{number}: the head of a table is `{HEAD}`")
    end_of_section(begin)
    return problems if tables else problems + [f"{DOCUMENT}: holds no table against the code"]
