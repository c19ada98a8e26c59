"""Walks the public headers: each parameter and each member that refers to bytes of somebody else (a view, a span, a pointer) is in
`kept_views.txt`, with the reason why it may. A parameter that outlives its call is copied, or has a type that a temporary cannot make;
docs/protocols/outgoing.md says what the reasons mean. Run with `write` to add what is missing, with the reason `?`, which this test refuses."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
LIST = HERE / "kept_views.txt"
REASONS = {
    "read": "is read before the call returns",
    "copied": "is copied before the call returns",
    "awaited": "is read until the awaited call has ended; its documentation says so",
    "written": "is where the call, or the awaited call, writes to",
    "result": "a plain value that the library gives; its documentation names the owner",
    "literal": "is made by the library of texts that live as long as the program",
    "named": "the object refers to what it was made of: that is what the class is for, and its documentation says so",
    "owner": "a pointer to an object of the library, which owns it or which its owner outlives",
}

TEXT = r"(?:std::)?(?:basic_)?string_view|(?:std::)?span\s*<[^;{}]*?>|const\s+(?:char|std::byte)\s*\*(?:\s*const)?"
POINTER = r"(?:const\s+)?[A-Za-z_][\w:]*(?:<[^;{}()]*>)?(?:\s+const)?\s*\*(?:\s*const)?"
# Layers whose names are the library's own, whatever header has them, and what a callback of the caller takes.
INTERNAL = {"parts", "detail", "actor", "base", "contexts", "io", "jobs", "kit", "memory", "observe", "protocols", "sched", "sharing", "submissions",
            "sync", "tasks", "values"}
CALLBACKS = {"void", "bool"}
PARAMETER = re.compile(rf"^(?:const\s+)?({TEXT}|{POINTER})\s*(\w+)\s*(?:=.*)?$", re.S)
MEMBER = re.compile(rf"^(?:mutable\s+|inline\s+|constexpr\s+|static\s+|const\s+)*({TEXT})\s*(\w+)((?:\s*=[^,]*|\{{[^}}]*\}})?(?:\s*,\s*\w+(?:\s*=[^,]*)?)*)$", re.S)
FUNCTION = re.compile(r"(operator\s*[^\s\w(]+|operator\s*\(\)|~?\w+)\s*$")


def plain(text):
    """Without comments, literals and lines of the preprocessor."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "' '", text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def pieces(text):
    """Split at the commas that are in no brackets."""
    depth, begin, found = 0, 0, []
    for at, letter in enumerate(text):
        if letter in "(<[{":
            depth += 1
        elif letter in ")>]}":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[begin:at])
            begin = at + 1
    return [*found, text[begin:]]


def closing(text, at):
    depth = 0
    for here in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[here], 0)
        if depth == 0:
            return here
    return len(text)


def words(text):
    return re.sub(r"\s+", " ", text).strip()


def scope_of(head):
    """What a brace opens, by the text before it: the name of a class or a namespace, or None for code and values."""
    head = re.sub(r"^\s*(?:public|private|protected)\s*:", "", head)
    head = re.sub(r"template\s*<.*?>\s*(?=class|struct|union)", "", head, flags=re.S)
    found = re.match(r"\s*(?:inline\s+)?namespace\s+([\w:]+)?\s*$", head)
    if found:
        return found.group(1) or "unnamed"
    found = re.search(r"\b(?:class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*)?([\w:]+)[^()=;]*$", head, re.S)
    return found.group(1) if found else None


def views_of(header):
    """The entries of one header: `path scope::function(parameter)` and `path scope::member`."""
    text = plain(header.read_text())
    path = header.relative_to(INCLUDE / "troupe")
    scopes, private, found = [], [False], []
    begin = at = 0

    def prefix():
        names = [name.removeprefix("troupe::") for name in scopes if name and name != "troupe"]
        return "::".join(names) + ("::" if names else "")

    def is_own():
        """Of the library alone: in `parts`, or in code."""
        return None in scopes or any(INTERNAL & set((name or "").split("::")) for name in scopes)

    while at < len(text):
        letter = text[at]
        if letter == "(" and not is_own():
            end = closing(text, at)
            name = FUNCTION.search(text[begin:at])
            if name and not private[-1] and name.group(1) not in CALLBACKS:
                for piece in pieces(text[at + 1 : end]):
                    fits = PARAMETER.match(words(piece))
                    if fits:
                        found.append(f"{path} {prefix()}{words(name.group(1))}({fits.group(2)})")
            at = end
        elif letter == "{":
            scopes.append(scope_of(text[begin:at]))
            private.append(bool(re.search(r"\bclass\s+[^()]*$", text[begin:at])) and scopes[-1] is not None)
            begin = at + 1
        elif letter == "}":
            if scopes:
                scopes.pop()
                private.pop()
            begin = at + 1
        elif letter == ":" and re.search(r"\b(public|private|protected)\s*$", text[begin:at]):
            private[-1] = not text[begin:at].rstrip().endswith("public")
            begin = at + 1
        elif letter == ";":
            member = MEMBER.match(words(text[begin:at]))
            if member and scopes and not is_own():
                found.append(f"{path} {prefix()}{member.group(2)}")
            begin = at + 1
        at += 1
    return found


def main():
    found = sorted({entry for header in sorted((INCLUDE / "troupe").rglob("*.h*")) for entry in views_of(header)})
    listed, wrong = {}, []
    for number, line in enumerate(LIST.read_text().splitlines() if LIST.exists() else [], 1):
        if not line or line.startswith("#"):
            continue
        entry, _, reason = line.rpartition(" ")
        listed[entry] = reason
        if reason not in REASONS:
            wrong.append(f"{LIST.name}:{number}: '{reason}' is no reason; there are {', '.join(REASONS)}")
    if sys.argv[1:] == ["write"]:
        head = "".join(f"# {reason}: {words}\n" for reason, words in REASONS.items())
        LIST.write_text(head + "".join(f"{entry} {listed.get(entry, '?')}\n" for entry in found))
        return
    wrong += [f"{entry}: a view, a span or a pointer; copy it, take a type that a temporary cannot make, or list it in {LIST.name} with the reason why "
              "it may refer to bytes of somebody else" for entry in found if entry not in listed]
    wrong += [f"{LIST.name}: {entry} is not there any more" for entry in listed if entry not in found]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
