"""The public names: types, functions and values at the level of a namespace, outside of the library's own ones. They are listed in
docs/decisions/api.md, a name that is new with the reason why no old form stretches.

api.py          checks
api.py write    writes the list of names anew; a name that was not in it goes to the new ones, with `?` as its reason, which the check refuses
"""

import collections
import pathlib
import re
import sys

import _declarations
import _headers

# Besides those that other walks leave out.
INTERNAL = _headers.INTERNAL | {"unnamed", "routes", "observing"}
PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "decisions" / "api.md"


def names_in(header):
    found = set()
    for spaces, made in of_namespaces(_declarations.read(header.read_text()), []):
        found |= {"::".join([*spaces, name]).removeprefix("troupe::") for name in made.names if not name.startswith(("operator", "~"))}
    return found


def of_namespaces(declarations, spaces):
    """(namespaces, declaration) of what is in the namespaces of users."""
    for made in declarations:
        if made.kind == "namespace":
            parts = made.name.split("::")
            if not set(parts) & INTERNAL:
                # A macro names an inline namespace, which users do not name.
                yield from of_namespaces(made.members, spaces + [part for part in parts if not part.isupper()])
        elif spaces:
            yield spaces, made


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
