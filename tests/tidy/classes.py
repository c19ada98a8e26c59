"""The size and the flags of each class of include and src. A class with all its member functions, wherever they are defined, has at
most LINES_MAX lines. A class has at most FLAGS_MAX two-valued members that change: states are enumerations with asserted
transitions. classes.txt lists the classes that have more: with the reason why their flags are no phases, or without one if they
are to become words. Those without a reason are at most OPEN_MAX, and no count there rises.

classes.py           checks
classes.py show      prints the largest classes, and those with the most flags
classes.py write     writes the list anew; reasons are kept
"""

import collections
import dataclasses
import pathlib
import re
import sys

import _declarations

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = pathlib.Path(__file__).resolve().parent / "classes.txt"
LINES_MAX = 900
FLAGS_MAX = 3
OPEN_MAX = 0
SHOWN = 15
HEAD = """# Classes of more than three two-valued members that change (classes.py), and the reason of those whose members are no phases:
# CLASS COUNT [reason]
"""

FLAG = re.compile(r"(?:mutable\s+|alignas\s*\([^)]*\)\s*)*(?:bool|std::atomic<\s*bool\s*>|std::atomic_bool)\s+(?=\w)(?!operator\b)")
UNNAMED = "(unnamed)"


@dataclasses.dataclass
class Found:
    """A class: its lines by file, the places of its definitions, and its flags."""
    lines: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    flags: list = dataclasses.field(default_factory=list)
    place: str = ""

    @property
    def size(self):
        return sum(self.lines.values())


class Reader(_declarations.Reader):
    """Notes the classes of a file, and the functions that are defined outside of their classes."""

    def __init__(self, path, text):
        super().__init__(text)
        self.path = path
        self.spaces, self.classes = [], []  # around the place that is read
        self.defined = []  # (path of the class, lines, flags)
        self.functions = []  # (namespaces around it, qualifier, lines)
        self.kind = None
        self.scope(0, len(text), True)

    def declaration(self, at, end):
        self.kind = None
        made, after = super().declaration(at, end)
        kind, self.kind = self.kind, None
        if kind and kind[0] == "function" and not self.classes:
            self.functions.append((list(self.spaces), kind[1], self.lines_from(at, after)))
        if kind and kind[0] == "class":
            self.defined[kind[1]][1] = self.lines_from(at, after) if not self.classes else 0
        return made, after

    def lines_from(self, at, after):
        """With the comment above it."""
        first = self.line_of(at)
        while first > 0 and self.lines[first - 1].lstrip().startswith("//"):
            first -= 1
        return self.line_of(after - 1) - first + 1

    def made_scope(self, at, here, close):
        head = self.plain[at:here].rstrip()
        if space := _declarations.NAMESPACE.match(head):
            self.spaces.append(space.group(1) or f"{UNNAMED}{self.path}")
            self.scope(here + 1, close, True)
            self.spaces.pop()
            return None
        found = self.type_of(at, here)
        word, name = found.group(1), found.group(2)
        if word.startswith("enum") or re.match(r"\s*friend\b", head):
            return None
        self.classes.append(name)
        index = len(self.defined)
        self.defined.append(["::".join(self.spaces + self.classes), 0, [], self.path])
        self.scope(here + 1, close, True)
        self.classes.pop()
        self.kind = ("class", index)
        return None

    def made(self, at, here, assigned, initializers, has_body=False):
        head = _declarations.ATTRIBUTES.sub(" ", self.plain[_declarations.template_end(self.plain, at):here])
        if has_body:
            flat = _declarations.without_angles(head)
            qualified = re.search(r"((?:\w+\s*::\s*)+)(?:~?\w+|operator[^(]*)\s*\(", re.sub(r"<[^<>()]*>|<\s+>", "", flat))
            if qualified:
                self.kind = ("function", re.sub(r"\s", "", qualified.group(1)).removesuffix("::"))
        elif self.classes and (flag := FLAG.match(head.strip())) and not self.is_function(head, assigned, at):
            names = [re.match(r"\s*(\w+)", piece) for piece in _declarations._headers.pieces(head.strip()[flag.end():])]
            owner = next(entry for entry in reversed(self.defined) if entry[0] == "::".join(self.spaces + self.classes))
            owner[2] += [name.group(1) for name in names if name]
        return None

    def is_function(self, head, assigned, at):
        text = head if assigned is None else self.plain[at:assigned]
        return "(" in re.sub(r"\{[^{}]*\}|alignas\s*\([^)]*\)", "", text.split("=")[0])


def sources():
    for folder in (ROOT / "include" / "troupe", ROOT / "src"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".hpp", ".cpp") and not re.search(r"\.(test|model|bench)\.", path.name):
                yield path


def owner_of(spaces, qualifier, classes):
    """The class that the qualifier names in these namespaces, or None for a namespace."""
    for depth in range(len(spaces), -1, -1):
        name = "::".join(spaces[:depth] + [qualifier])
        if name in classes:
            return name
    return None


def read(texts):
    """The classes by name; `texts`: (path, text) of each file. A class within another one's definition is a part of that."""
    readers = [Reader(path, text) for path, text in texts]
    classes, inside = {}, {}
    for reader in readers:
        for name, lines, flags, path in reader.defined:
            found = classes.setdefault(name, Found(place=path))
            found.flags = found.flags or flags
            if lines:
                found.lines[path] += lines
            else:
                inside[name] = name.rpartition("::")[0]
    for reader in readers:
        for spaces, qualifier, lines in reader.functions:
            name = owner_of(spaces, qualifier, classes)
            while name in inside:
                name = inside[name]
            if name:
                classes[name].lines[reader.path] += lines
    return classes


def known(text):
    listed = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, count, *reason = line.split(" ", 2)
            listed[name] = int(count), reason[0] if reason else ""
    return listed


def shown_name(name):
    return re.sub(r"\(unnamed\)[^:]*", UNNAMED, name).removeprefix("troupe::")


def many_flags(classes):
    """By the name of the class in the list: how many flags it has, where these are more than FLAGS_MAX."""
    return {shown_name(name): (len(found.flags), found) for name, found in classes.items() if len(found.flags) > FLAGS_MAX}


def compare(classes, listed):
    problems = []
    for name, found in classes.items():
        if found.size > LINES_MAX:
            files = ", ".join(f"{path} {lines}" for path, lines in found.lines.items())
            problems.append(f"{shown_name(name)} has {found.size} lines ({files}): at most {LINES_MAX}; make an object of a part of it")
    many = many_flags(classes)
    for name, (count, found) in many.items():
        if name not in listed:
            problems.append(f"{found.place}: {name} has {count} two-valued members ({', '.join(found.flags)}): at most {FLAGS_MAX}; "
                            "name its states by an enumeration with asserted transitions, or say in classes.txt why they are no phases")
        elif count > listed[name][0]:
            problems.append(f"{found.place}: {name} has {count} two-valued members, and had {listed[name][0]} (classes.txt)")
        elif count < listed[name][0]:
            problems.append(f"classes.txt: {name} has {count} two-valued members only; run classes.py write")
    problems += [f"classes.txt: {name} has at most {FLAGS_MAX} two-valued members, or is gone; run classes.py write"
                 for name in listed if name not in many]
    open_ones = [name for name, (_, reason) in listed.items() if not reason]
    if len(open_ones) != OPEN_MAX:
        problems.append(f"classes.txt: {len(open_ones)} classes have no reason ({', '.join(open_ones)}), and OPEN_MAX is {OPEN_MAX}: "
                        "name the states of a new one, and lower OPEN_MAX when there are fewer")
    return problems


def main(words):
    classes = read([(path.relative_to(ROOT).as_posix(), path.read_text()) for path in sources()])
    listed = known(LIST.read_text()) if LIST.is_file() else {}
    many = many_flags(classes)
    if words == ["show"]:
        for name, found in sorted(classes.items(), key=lambda item: -item[1].size)[:SHOWN]:
            print(f"{found.size:5} lines  {shown_name(name)}: {', '.join(f'{path} {lines}' for path, lines in found.lines.items())}")
        for name, (count, found) in sorted(many.items(), key=lambda item: -item[1][0]):
            print(f"{count:5} flags  {name} ({found.place}): {', '.join(found.flags)}")
        return 0
    if words == ["write"]:
        lines = [f"{name} {count} {listed.get(name, (0, ''))[1]}".rstrip() for name, (count, _) in sorted(many.items())]
        LIST.write_text(HEAD + "".join(line + "\n" for line in lines))
        return 0
    problems = compare(classes, listed)
    most = max(found.size for found in classes.values())
    print("\n".join(problems) or f"classes: {len(classes)}, of at most {most} lines; {len(many)} have more than {FLAGS_MAX} flags")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
