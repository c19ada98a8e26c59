"""The public names: types, functions and values at the level of a namespace, outside of the library's own ones. They are listed in
docs/decisions/api.md, a name that is new with the reason why no old form stretches.

api.py          checks
api.py write    writes the list of names anew; a name that was not in it goes to the new ones, with `?` as its reason, which the check refuses
"""

import collections
import pathlib
import re
import sys

import _headers

# Besides those that other walks leave out.
INTERNAL = _headers.INTERNAL | {"unnamed", "routes", "observing"}
PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "decisions" / "api.md"
TYPE = re.compile(r"^(?:class|struct|union|enum(?:\s+class)?)\s+(?:\[\[.*?\]\]\s*)?(?:TROUPE_\w+\s+)?(\w+)\b(?!\s*<)[^()]*$")
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
CONCEPT = re.compile(r"^concept\s+(\w+)")
VALUE = re.compile(r"^(?:extern\s+|inline\s+|constexpr\s+|constinit\s+|const\s+)*[\w:<>,\s*&]+?\s(\w+)$")
ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]|\bTROUPE_\w+\b(?:\s*\([^()]*\))?|\balignas\s*\([^()]*\)|\brequires\b[^;{]*")


def without_template(text):
    """The declaration behind `template <…>`, as often as it occurs."""
    while True:
        found = re.match(r"\s*template\s*(?=<)", text)
        if not found:
            return text.strip()
        at, depth = found.end(), 0
        while at < len(text):
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        text = text[at:]


def of_constrained(text):
    """The name behind `requires …`: of a class, or in front of the last parameters."""
    found = re.search(r"\b(?:class|struct)\s+(\w+)\s*(?:final\s*)?(?::[^()]*)?$", text)
    if found:
        return found.group(1)
    depth, name = 0, None
    for at, letter in enumerate(text):
        if letter == "(" and depth == 0:
            before = re.search(r"(?<![:\w])(\w+)\s*$", text[:at])
            if before and before.group(1) not in ("requires", "noexcept", "decltype", "sizeof"):
                name = before.group(1)
        depth += {"(": 1, ")": -1}.get(letter, 0)
    return name


def name_of(head):
    """The name that a declaration at the level of a namespace gives; None for another one of a known name, and for friends and operators."""
    plain = without_template(_headers.words(head))
    concept = CONCEPT.match(plain)
    if concept:
        return concept.group(1)
    if plain.startswith("requires"):
        return of_constrained(plain)
    plain = without_template(_headers.words(ATTRIBUTE.sub(" ", plain)))
    for form in (TYPE, ALIAS):
        found = form.match(plain)
        if found:
            return found.group(1)
    if re.match(r"(?:friend|static_assert|using|extern template|template|namespace|typedef)\b", plain) or "operator" in plain:
        return None
    at = plain.find("(")
    if at >= 0:
        found = re.search(r"(~?\w+)\s*$", plain[:at])
        return found.group(1) if found and "::" not in plain[:at].split()[-1] else None
    found = VALUE.match(plain.split("=")[0].strip())
    return found.group(1) if found else None


def names_in(header):
    text = _headers.plain(header.read_text())
    scopes, begin, found = [], 0, set()
    for at, letter in enumerate(text):
        if letter not in "{};":
            continue
        head = text[begin:at]
        at_namespace = all(isinstance(scope, tuple) for scope in scopes)
        spaces = [part for scope in scopes if isinstance(scope, tuple) for part in scope]
        is_own = bool(set(spaces) & INTERNAL) or not spaces
        if letter == "{":
            space = re.search(r"\bnamespace\s+([\w:]+)?\s*$", head)
            if space:
                scopes.append(tuple((space.group(1) or "unnamed").split("::")))
                begin = at + 1
                continue
        if letter in "{;" and at_namespace and not is_own and head.strip():
            name = name_of(head)
            if name and not name.startswith(("TROUPE_", "~")) and not (letter == ";" and re.match(r"\s*(class|struct)\b", without_template(head))):
                found.add("::".join([*spaces, name]).removeprefix("troupe::"))
        if letter == "{":
            scopes.append(None)
        elif letter == "}" and scopes:
            scopes.pop()
        begin = at + 1
    return found


def names():
    found = collections.defaultdict(set)
    for header in sorted((_headers.INCLUDE / "troupe").rglob("*.hpp")):
        path = str(header.relative_to(_headers.INCLUDE / "troupe"))
        for name in names_in(header):
            found[name].add(path)
    return {name: sorted(where)[0] for name, where in found.items()}


NEW = re.compile(r"^\| `([\w:]+)` \| (.*) \|$", re.M)
LISTED = re.compile(r"^- `[\w/.]+`: (.*)$", re.M)


def read():
    text = PAGE.read_text()
    new, _, old = text.partition("\n## Names\n")
    return dict(NEW.findall(new)), {name for line in LISTED.findall(old) for name in re.findall(r"`([\w:]+)`", line)}


def write():
    new, old = read()
    found = names()
    added = {name: new.get(name, "?") for name in found if name not in old}
    text = PAGE.read_text()
    head = text[: text.index("| name |")]
    table = "| name | why no old form stretches |\n|---|---|\n" + "".join(f"| `{name}` | {why} |\n" for name, why in sorted(added.items()))
    lines = collections.defaultdict(list)
    for name in sorted(old & set(found)):
        lines[found[name]].append(f"`{name}`")
    PAGE.write_text(head + table + "\n## Names\n\n" + "".join(f"- `{path}`: {', '.join(all_of)}\n" for path, all_of in sorted(lines.items())))


def main():
    if sys.argv[1:] == ["write"]:
        return write()
    new, old = read()
    found = set(names())
    wrong = [f"{name} is a new public name: give it a line in docs/decisions/api.md that says why no old form stretches, or put it into a "
             "namespace of the library's own" for name in sorted(found - old - set(new))]
    wrong += [f"docs/decisions/api.md: {name} is no public name any more" for name in sorted((old | set(new)) - found)]
    wrong += [f"docs/decisions/api.md: {name} needs a reason" for name, why in sorted(new.items()) if not why.strip(" ?")]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
