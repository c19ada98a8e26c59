"""What the public headers declare, as far as tests walk it: the parameters and the members of some types, and the functions with some results."""

import pathlib
import re

INCLUDE = pathlib.Path(__file__).resolve().parent.parent.parent / "include"
# Layers whose names are the library's own, whatever header has them.
INTERNAL = {"parts", "detail", "actor", "base", "contexts", "io", "jobs", "kit", "memory", "observe", "protocols", "sched", "sharing", "submissions",
            "sync", "tasks", "values"}
# For a walk that asks for functions alone.
NOTHING = re.compile(r"(?!)")
# What a callback of the caller takes.
CALLBACKS = {"void", "bool"}
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


def closing(text, at, pair="()"):
    depth = 0
    for here in range(at, len(text)):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[here], 0)
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


def entries(header, parameter, member, internal=frozenset(), with_private_members=True, result=None):
    """The entries of one header: `path scope::function(name)` and `path scope::name`, whose texts fit. `parameter` has the name as its last
    group, `member` as its second. `path scope::function()` is an entry if `result(before, behind)` says so of the texts before its name and
    behind its parameters. Scopes of `internal` are left out, and private functions."""
    text = plain(header.read_text())
    path = header.relative_to(INCLUDE / "troupe")
    scopes, private, found = [], [False], []
    begin = at = 0

    def prefix():
        names = [name.removeprefix("troupe::") for name in scopes if name and name != "troupe"]
        return "::".join(names) + ("::" if names else "")

    def is_own():
        """Of the library alone: in `parts`, or in code."""
        return None in scopes or any(internal & set((name or "").split("::")) for name in scopes)

    while at < len(text):
        letter = text[at]
        if letter == "(" and not is_own():
            end = closing(text, at)
            name = FUNCTION.search(text[begin:at])
            if name and not private[-1] and name.group(1) not in CALLBACKS:
                behind = re.match(r"[^;{]*[;{]?", text[end + 1 :]).group()
                if result is not None and result(words(text[begin:at][: name.start()]), words(behind)):
                    found.append(f"{path} {prefix()}{words(name.group(1))}()")
                for piece in pieces(text[at + 1 : end]):
                    fits = parameter.match(words(piece))
                    if fits:
                        found.append(f"{path} {prefix()}{words(name.group(1))}({fits.group(fits.re.groups) or ''})")
            at = end
        elif letter == "{" and member.match(words(text[begin:at])):
            at = closing(text, at, "{}")  # the value of a member
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
            fits = member.match(words(text[begin:at]))
            if fits and scopes and not is_own() and (with_private_members or not private[-1]):
                found.append(f"{path} {prefix()}{fits.group(2)}")
            begin = at + 1
        at += 1
    return found


def all_entries(*args, **options):
    return sorted({entry for header in sorted((INCLUDE / "troupe").rglob("*.h*")) for entry in entries(header, *args, **options)})


def compare(found, path, reasons, advice, write):
    """Compares what was found with the list: a line each, `entry reason`. Returns the complaints; or writes the list anew, with `?` as the
    reason of what was not in it."""
    listed, wrong = {}, []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line or line.startswith("#"):
            continue
        entry, _, reason = line.rpartition(" ")
        listed[entry] = reason
        if reason not in reasons:
            wrong.append(f"{path.name}:{number}: '{reason}' is no reason; there are {', '.join(reasons)}")
    if write:
        head = "".join(f"# {reason}: {meaning}\n" for reason, meaning in reasons.items())
        path.write_text(head + "".join(f"{entry} {listed.get(entry, '?')}\n" for entry in found))
        return []
    wrong += [f"{entry}: {advice}" for entry in found if entry not in listed]
    return wrong + [f"{path.name}: {entry} is not there any more" for entry in listed if entry not in found]
