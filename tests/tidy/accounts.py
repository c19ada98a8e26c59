"""docs/protocols/accounts.md against the code: each member that grows with what a peer sends or leaves is in its table."""

import pathlib
import re

DOCUMENT = pathlib.Path("docs/protocols/accounts.md")
# Where objects live as long as a connection, a stream or a session.
FOLDERS = ("src/http", "src/nats", "src/protocol", "src/tls", "include/troupe/http", "include/troupe/nats", "include/troupe/protocol",
           "include/troupe/tls")

# A member whose memory grows: a container, a buffer, or an object that has some.
GROWS = (r"std::(?:string|vector|deque|list|map|set|unordered_map|unordered_set)\b(?!_view)", r"std::unique_ptr<(?:char|std::byte)\[\]>",
         r"(?:std::optional<)?input\b", r"output\b", r"header_lines\b", r"response\b", r"(?:std::optional<)?head_block\b", r"std::unique_ptr<decoded_body>",
         r"channel<", r"(?:troupe::)?file\b", r"(?:const )?std::unique_ptr<encoder>")
MEMBER = re.compile(r"^\s+(?:mutable |const |static )*(" + "|".join(GROWS) + r")[^()]*?(?<![&*])[ >](?!nullptr)(\w+(?:(?:, | = [^;,]*, )\w+)*)(?: = [^;]*|\{[^;]*\})?;")
CLASS = re.compile(r"^\s*(?:template <[^>]*>\s*)?(?:class|struct) (\w+)[^;]*$")
# `class::*`: a class that is made of the program's own texts, or of one text of the peer, has a row for all its members without `_`.
ROW = re.compile(r"^\| `(\w+)::(\w+|\*)` \| (.*?) \|")
CHARGED = re.compile(r"`(\w+)::(\w+)\(\)`")


def members(tree):
    """(class, member): where it is declared."""
    found = {}
    for path in tree.files(suffixes=(".hpp", ".cpp")):
        if not str(path).startswith(tuple(f + "/" for f in FOLDERS)) or path.name.endswith(".test.cpp"):
            continue
        inside = {}  # the class that was begun last at each indentation
        for number, line in enumerate(tree.lines(path), 1):
            indent = len(line) - len(line.lstrip())
            if line.lstrip().startswith("}"):
                inside = {at: name for at, name in inside.items() if at < indent}
            if match := CLASS.match(line):
                inside[indent] = match.group(1)
            elif indent - 2 in inside and (match := MEMBER.match(line)):
                for member in re.findall(r"\w+(?=,|$| = )", match.group(2)):
                    found[inside[indent - 2], member] = f"{path}:{number}"
    return found


def rows(tree):
    """(class, member): (line number, what charges it)."""
    found = {}
    for number, line in enumerate(tree.lines(DOCUMENT), 1):
        if match := ROW.match(line):
            found[match.group(1), match.group(2)] = number, match.group(3)
    return found


def charges(tree, owner, function, member):
    """Whether a function of that class names the member."""
    start = re.compile(rf"(?:{owner}::)?\b{function}\([^;]*\{{|{owner}::{function}\(")
    for path in tree.files("src", "include", suffixes=(".hpp", ".cpp")):
        lines = tree.lines(path)
        for at, line in enumerate(lines):
            if start.search(line) and any(re.search(rf"\b{member}\b", one) for one in lines[at:at + 30]):
                return True
    return False


def check_accounts(tree):
    if not (tree.root / DOCUMENT).is_file():
        return [f"{DOCUMENT}: is missing"]
    there, listed = members(tree), rows(tree)
    whole = {owner for owner, member in listed if member == "*"}
    known = set(listed) | {one for one in there if one[0] in whole and not one[1].endswith("_")}
    there_or_whole = set(there) | {(owner, "*") for owner, member in there if not member.endswith("_")}
    problems = [f"{there[one]}: {one[0]}::{one[1]} may grow, and {DOCUMENT} does not say what charges it"
                for one in sorted(set(there) - known)]
    problems += [f"{DOCUMENT}:{listed[one][0]}: there is no {one[0]}::{one[1]}" for one in sorted(set(listed) - there_or_whole)]
    for (owner, member), (number, what) in sorted(listed.items()):
        for by, function in CHARGED.findall(what):
            if (owner, member) in there and not charges(tree, by, function, member):
                problems.append(f"{DOCUMENT}:{number}: {by}::{function}() does not count {member}")
    return problems
