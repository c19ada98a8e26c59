"""What a coroutine can await, and the table of what each loses: the types in the public headers that can be awaited, and the public
functions that return one.

Usage: waits.py list      prints the types with an `await_resume`, the operations behind them, and the functions
       waits.py check     compares them with waits.txt, the guide and the tests
       waits.py guide     writes the guide's table from waits.txt
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tidy"))
import _headers
TABLE = pathlib.Path(__file__).with_name("waits.txt")
GUIDE = ROOT / "docs/guide/tasks.md"
BEGIN, END = "<!-- made from tests/given_up/waits.txt -->", "<!-- end -->"
SCOPE = re.compile(r"\b(class|struct|namespace)\s+(?:\[\[\w+\]\]\s*)?(\w+(?:<[\w, ]*>)?(?:::\w+)*)"
                   r"(?:\s+final)?\s*(?::[^:;{][^;{]*)?\{")
MEMBER = re.compile(r"\b(?:operator\s+co_await|await_resume|bool\s+withdraw)\s*\(\s*\)[^;{}()]*(?:\([^()]*\)\s*)?[{;]|"
                    r"\bstatic\s+constexpr\s+(?:io::)?action\s+what\s*=")
# Namespaces of the library's own. What lies in `parts` may be a base of what users have.
INTERNAL = _headers.INTERNAL - {"parts"}
CLASS = re.compile(r"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:<[^{};]*>)?(?:\s+final)?\s*(?::([^:;{][^;{]*))?\{")
FIRST_NAME = re.compile(r"\s*(?:(?:typename|public|protected|private|virtual|const)\s+)*(?:\w+::)*(\w+)")


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


def types_in(text):
    """Returns the qualified names of the types that define such a member, outermost first."""
    text = without_comments(text)
    scopes = {match.end() - 1: match.group(1, 2) for match in SCOPE.finditer(text)}
    members = {match.start() for match in MEMBER.finditer(text)}
    found, open_scopes = [], []
    for at, char in enumerate(text):
        if at in members:
            names = [name for kind, name in open_scopes if kind in ("class", "struct")]
            if names and "::".join(names) not in found:
                found.append("::".join(names))
        if char == "{":
            open_scopes.append(scopes.get(at, ("", "")))
        elif char == "}" and open_scopes:
            open_scopes.pop()
    return found


def all_types():
    include = ROOT / "include/troupe"
    return {f"{header.relative_to(include)} {name}"
            for header in sorted(include.rglob("*.hpp")) for name in types_in(header.read_text())}


def first_name(text):
    found = FIRST_NAME.match(text)
    return found.group(1) if found else ""


def own_members(body):
    """The text of a class without what its members have in braces."""
    depth, kept = 0, []
    for letter in body:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        kept.append(letter if depth == 1 else " ")
    return "".join(kept)


def awaitable_names(texts):
    """The names of all classes and aliases that can be awaited: by a member of their own, of a base, or of what they stand for."""
    names, bases, aliases = {"task", "lazy", "async_generator"}, [], []
    for text in texts:
        for match in CLASS.finditer(text):
            body = own_members(text[match.end() - 1 : _headers.closing(text, match.end() - 1, "{}")])
            if re.search(r"\bawait_resume\s*\(|\boperator\s+co_await\b", body):
                names.add(match.group(1))
            bases.append((match.group(1), {first_name(base) for base in _headers.pieces(match.group(2) or "")}))
        aliases += [(name, {first_name(of)}) for name, of in re.findall(r"\busing\s+(\w+)\s*=([^;]*);", text)]
    while True:
        more = {name for name, behind in bases + aliases if behind & names} - names
        if not more:
            return names
        names |= more


def without_templates(text):
    """Without `template <…>`, `requires (…)` and attributes."""
    while (match := re.search(r"\btemplate\s*<", text)) is not None:
        text = text[: match.start()] + text[_headers.closing(text, match.end() - 1, "<>") + 1 :]
    while (match := re.search(r"\brequires\s*\(", text)) is not None:
        text = text[: match.start()] + text[_headers.closing(text, match.end() - 1) + 1 :]
    return re.sub(r"\[\[.*?\]\]", "", text)


def all_functions():
    """The public functions that return what can be awaited, or what only their code says (`auto`)."""
    include = ROOT / "include/troupe"
    names = awaitable_names([_headers.plain(header.read_text()) for header in sorted(include.rglob("*.h*"))])

    def gives(before, behind):
        before = without_templates(before)
        is_other = re.search(r"(?<!:):(?!:)|\b(?:consteval|explicit|concept|operator|using)\b|(?<![=!<>])=(?!=)|::$", before)
        is_other = is_other or (re.search(r"\bfriend\b", before) and not behind.endswith("{"))
        arrow = re.search(r"->\s*(.*)", behind)
        result = arrow.group(1) if arrow and re.search(r"\bauto\b", before) else before
        result = result.rstrip()
        if is_other or not result or re.search(r"(?<!&)&$|\*$", result):
            return False
        return bool(set(re.findall(r"\w+", result)) & (names | {"auto"}))

    found = _headers.all_entries(_headers.NOTHING, _headers.NOTHING, internal=INTERNAL, result=gives)
    for header in sorted(include.rglob("*.h*")):
        for name in re.findall(r"\boperator\s+(?:\w+::)*(\w+)", _headers.plain(header.read_text())):
            if name in names:
                found.append(f"{header.relative_to(include)} operator {name}()")
    return {entry for entry in found if not re.search(r"[ :](?:operator\s*(?:[<=>]+)?|await_\w+|requires|\w+_)\(\)$", entry)}


def rows():
    """Rows of the table: the wait, what is lost, its test, and the types and functions."""
    made = []
    for line in TABLE.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            entry, _, test = line.strip().partition(" = ")
            made[-1]["entries"].append((entry, test))
            continue
        wait, lost, test = (part.strip() for part in line.split("|"))
        made.append({"wait": wait, "lost": lost, "test": test, "entries": []})
    return made


def guide_table():
    lines = ["| a wait for | what is lost when it is given up |", "|---|---|"]
    lines += [f"| {row['wait']} | {row['lost']} |" for row in rows() if row["wait"] != "internal"]
    return "\n".join(lines)


def guide_parts():
    before, _, rest = GUIDE.read_text().partition(BEGIN)
    made, _, after = rest.partition(END)
    return before, made, after


def names_in_tests():
    """The sources of tests/given_up, by which each value of a wait is counted, and the tests beside them and of the components."""
    names = set()
    for file in sorted((ROOT / "tests").rglob("*.[ch]pp")):
        text = file.read_text()
        names |= set(re.findall(r"\bTEST(?:_P|_F)?\(\s*\w+,\s*(\w+)\)", text))
        if "given_up" in file.relative_to(ROOT).parts:
            names |= set(re.findall(r'\{"(\w+)",\s*&make_', text))
    return names


def problems():
    listed = [entry for row in rows() for entry, _ in row["entries"]]
    found = all_types() | all_functions()
    for name in sorted(found - set(listed)):
        yield f"{name}: it can be awaited, or gives what can be, and is not in {TABLE.relative_to(ROOT)}: say what is lost"
    for name in sorted(set(listed) - found):
        yield f"{name}: it is in {TABLE.relative_to(ROOT)}, and not in the headers"
    for name in sorted({one for one in listed if listed.count(one) > 1}):
        yield f"{name}: it is listed twice"
    tests = names_in_tests()
    for row in rows():
        if not any(name.startswith(row["test"]) for name in tests):
            yield f"{row['wait']}: no test or source begins with \"{row['test']}\""
        for entry, test in row["entries"]:
            if test and test not in tests:
                yield f"{entry}: there is no test or source \"{test}\""
            if not test and entry.endswith("()") and row["lost"].startswith("nothing") and row["wait"] != "internal":
                yield f"{entry}: nothing is lost with it: name the test that shows it, as `{entry} = test`"
    if guide_parts()[1].strip() != guide_table():
        yield f"{GUIDE.relative_to(ROOT)}: its table is not that of waits.txt; run waits.py guide"


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what == "list":
        print("\n".join(sorted(all_types() | all_functions())))
    elif what == "guide":
        before, _, after = guide_parts()
        GUIDE.write_text(f"{before}{BEGIN}\n{guide_table()}\n{END}{after}")
    elif what == "check":
        found = list(problems())
        print("\n".join(found))
        return 1 if found else 0
    else:
        print(__doc__)
        return 2
    return 0


sys.exit(main())
