"""The types in the public headers that a coroutine can await, and the table of what each loses.

Usage: waits.py list      prints the types with an `await_resume`, and the operations behind them
       waits.py check     compares them with waits.txt, the guide and the tests
       waits.py guide     writes the guide's table from waits.txt
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("waits.txt")
GUIDE = ROOT / "docs/guide/tasks.md"
BEGIN, END = "<!-- made from tests/given_up/waits.txt -->", "<!-- end -->"
SCOPE = re.compile(r"\b(class|struct|namespace)\s+(?:\[\[\w+\]\]\s*)?(\w+(?:<[\w, ]*>)?(?:::\w+)*)"
                   r"(?:\s+final)?\s*(?::[^:;{][^;{]*)?\{")
MEMBER = re.compile(r"\b(?:await_resume|bool\s+withdraw)\s*\(\s*\)\s*(?:const\s*)?(?:noexcept\s*)?[{;]|"
                    r"\bstatic\s+constexpr\s+(?:io::)?action\s+what\s*=")


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


def rows():
    """Rows of the table: the wait, what is lost, its test, and the types."""
    made = []
    for line in TABLE.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            made[-1]["types"].append(line.strip())
            continue
        wait, lost, test = (part.strip() for part in line.split("|"))
        made.append({"wait": wait, "lost": lost, "test": test, "types": []})
    return made


def guide_table():
    lines = ["| a wait for | what is lost when it is given up |", "|---|---|"]
    lines += [f"| {row['wait']} | {row['lost']} |" for row in rows() if row["wait"] != "internal"]
    return "\n".join(lines)


def guide_parts():
    before, _, rest = GUIDE.read_text().partition(BEGIN)
    made, _, after = rest.partition(END)
    return before, made, after


def problems():
    listed = [name for row in rows() for name in row["types"]]
    found = all_types()
    for name in sorted(found - set(listed)):
        yield f"{name}: it can be awaited, and is not in {TABLE.relative_to(ROOT)}"
    for name in sorted(set(listed) - found):
        yield f"{name}: it is in {TABLE.relative_to(ROOT)}, and not in the headers"
    for name in sorted({one for one in listed if listed.count(one) > 1}):
        yield f"{name}: it is listed twice"
    tests = "".join(file.read_text() for file in sorted(TABLE.parent.glob("*.[ch]pp")))
    for row in rows():
        if not re.search(rf"\b{row['test']}", tests):
            yield f"{row['wait']}: no test names \"{row['test']}\""
    if guide_parts()[1].strip() != guide_table():
        yield f"{GUIDE.relative_to(ROOT)}: its table is not that of waits.txt; run waits.py guide"


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what == "list":
        print("\n".join(sorted(all_types())))
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
