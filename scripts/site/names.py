"""The public names of the headers, where the site explains each, and which one a word means."""

import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))

import _declarations  # noqa: E402
import api  # noqa: E402

INCLUDE = ROOT / "include" / "troupe"
FOR_THE_LIBRARY = re.compile(r"not for users|^Access for other parts of the library")


@dataclasses.dataclass
class Entry:
    """A declaration with its place in the site."""

    made: _declarations.Declaration
    full: str  # without `troupe::`
    page: str  # the address of its page, from the root of the site
    anchor: str
    members: list = dataclasses.field(default_factory=list)
    others: list = dataclasses.field(
        default_factory=list
    )  # the anchors of names that it declares as well

    @property
    def url(self):
        return f"{self.page}#{self.anchor}"


@dataclasses.dataclass
class Header:
    path: str  # from include/troupe
    page: str
    text: str
    declarations: list  # all of them, the library's own too
    entries: list = dataclasses.field(default_factory=list)


class Names:
    def __init__(self):
        self.headers, self.table, self.bases = {}, {}, {}
        for file in sorted(INCLUDE.rglob("*.hpp")):
            path = str(file.relative_to(INCLUDE))
            text = file.read_text()
            header = Header(path, page_of(path), text, _declarations.read(text))
            self._collect(header)
            self.headers[path] = header
        self.by_last = {}
        for full, entry in self.table.items():
            self.by_last.setdefault(full.rpartition("::")[2], []).append(entry)
        self.by_file = {}
        for path in self.headers:
            self.by_file.setdefault(path.rsplit("/", 1)[-1], []).append(path)

    def _collect(self, header):
        anchors = set()
        for spaces, made in api.of_namespaces(header.declarations, []):
            if made.name and not made.name.startswith(("operator", "~")):
                scope = "::".join(spaces).removeprefix("troupe").removeprefix("::")
                header.entries.append(self._entry(made, scope, "", header, anchors))

    def _entry(self, made, scope, above, header, anchors):
        full = f"{scope}::{made.name}" if scope else made.name
        anchor = unique(f"{above}.{made.name}" if above else made.name, anchors)
        entry = Entry(made, full, header.page, anchor)
        known = self.table.get(full)
        # Of several declarations the first one that is explained.
        if known is None or (not known.made.comment and made.comment):
            self.table[full] = entry
        for name in made.names[1:]:
            other = dataclasses.replace(
                entry,
                full=f"{scope}::{name}" if scope else name,
                anchor=unique(f"{above}.{name}" if above else name, anchors),
            )
            entry.others.append(other.anchor)
            self.table.setdefault(other.full, other)
        if made.kind == "class":
            self.bases[full] = made.bases
        for member in made.members:
            if not is_boilerplate(member, made.name) and not (
                member.kind == "class" and is_internal(member)
            ):
                entry.members.append(self._entry(member, full, anchor, header, anchors))
        return entry

    def resolve(self, name, scope=""):
        """The entry that a name means within a scope, or None."""
        plain = name.removeprefix("::").removeprefix("troupe::")
        scope, name = "" if plain != name else scope, plain
        parts = scope.split("::") if scope else []
        while True:
            within = "::".join(parts)
            if parts and name == parts[-1] and within in self.table:
                return self.table[within]  # within a class its name is no constructor
            found = self.table.get(f"{within}::{name}" if within else name) or self._inherited(
                within, name
            )
            if found or not parts:
                return found
            parts.pop()

    def only_member(self, name):
        """The entry of a name that only one class has, and that is no plain word."""
        found = self.by_last.get(name, []) if "_" in name else []
        return found[0] if len(found) == 1 else None

    def _inherited(self, within, name):
        for base in self.bases.get(within, ()):
            plain = base.split("<")[0]
            found = None if plain == within else self.resolve(plain, within.rpartition("::")[0])
            if (
                found
                and found.full != within
                and (
                    inner := self.table.get(f"{found.full}::{name}")
                    or self._inherited(found.full, name)
                )
            ):
                return inner
        return None

    def header_named(self, name):
        """The header of a path in `#include`, or of a name that only one header has, or None."""
        path = name.strip('<>"').removeprefix("troupe/")
        if path in self.headers:
            return self.headers[path]
        found = self.by_file.get(path, [])
        return self.headers[found[0]] if len(found) == 1 else None


def page_of(path):
    """The page of a header; `reference/NAME.html` is that of a component."""
    plain = path.removesuffix(".hpp")
    return f"reference/{plain if '/' in plain else f'{plain}/{plain}'}.html"


def is_boilerplate(made, name):
    """What a class has without a word: copies, moves, the end, and refused overloads."""
    if made.kind == "namespace" or made.name.startswith("~"):
        return True
    if made.text.endswith("= delete;") or made.name == "operator=":
        return True
    if made.comment:
        return False
    if made.kind == "alias":
        return bool(re.search(r"\b(?:actor|detail|io|parts|sync|tasks)::", made.text))
    if made.name == name:
        return f"const {name}&" in made.text or f"{name}&&" in made.text
    return made.name in ("operator==", "operator<=>")


def is_internal(made):
    """A declaration that no comment explains, and that is no plain list of values."""
    if made.comment:
        return bool(FOR_THE_LIBRARY.search(" ".join(made.comment)))
    if made.kind == "class":
        return not any(member.comment for member in made.members) and not all(
            member.kind == "value" for member in made.members
        )
    return made.kind != "enum"


def unique(anchor, taken):
    number, made = 1, anchor.replace(" ", "-")
    while made in taken:
        number += 1
        made = f"{anchor.replace(' ', '-')}-{number}"
    taken.add(made)
    return made
