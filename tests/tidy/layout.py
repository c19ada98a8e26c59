"""Rules about the layout: width of lines, length of functions, files in a folder, retired words."""

import re
import subprocess
from collections import Counter

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 16
CPP = (".hpp", ".h", ".cpp", ".c")

# Longer functions, each with its reason.
LONG_FUNCTIONS = {
    # Its awaits are those of each batch of requests: a coroutine for a part would cost a frame.
    ("src/http/server/accept/connection_over.hpp", "run"),
    # A table.
    ("tests/http/client/client_failures.cpp", "vectors"),
}

# Folders with more files, each with its reason.
LARGE_FOLDERS = {
    # Each file is a program of its own, which `./run` lists and starts by its path.
    "examples",
}

NAMESAKES_MAX = 2

# Basenames of more units, each with its meaning, which is the same in all of them
# (docs/decisions/file_names.md).
REPEATED_NAMES = {
    "connection": "the connection of the layer's protocol",
    "error": "the type of the layer's errors",
    "options": "the options of the layer's main type",
}

# What opens a body and is no function: a scope of names, a type, a statement, a list of values.
NO_FUNCTION = re.compile(
    r"(?:inline )?(?:namespace|class|struct|union|enum|extern|if|for|while|switch|do|else|try|catch|"
    r"return|case|default)\b"
    r"|template <.*>\s*(?:requires .* )?(?:class|struct|union)\b"
    r"|.*[=(,\[]\s*\{$"
    r"|[\])}]")
# It is a part of the function around it.
LAMBDA = re.compile(r"\[[^\[\]]*\](?:<.*>)?\s*(?:\(.*\)|mutable|\{)")
STATEMENT_ENDS = re.compile(
    r"(?:[;{}]|\b(?:public|private|protected|default|case .*):)\s*(?://.*)?$"
    r"|^\s*(?://.*|#.*)?$")

# Identifiers that have no other technical meaning, and the word that replaced each.
RETIRED = {
    "bury": "make a dead letter",
    "census": "outstanding work",
    "dormant": "inactive",
    "errand": "proxy job",
    "farewell": "unreferenced notice, rejection linger",
    "glance": "check the clock",
    "hungry": "wants work",
    "kin": "supervision state",
    "nudge": "wake hint",
    "oddities": "slow path flags",
    "oddity": "slow path flag",
    "rebirth": "reconstruction",
    "roster": "idle workers",
    "seat": "driver slot, reader or writer lock",
    "shelf": "free list",
    "stir": "rebalance",
    "strand": "fork frame",
    "suffer": "apply the error policy",
    "unborn": "not begun",
    "wary": "saw slow turns",
}
RETIRED_PART = re.compile(r"(?<![a-z])(" + "|".join(RETIRED) + r")(?:s|ed|ing)?(?![a-z])")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def check_columns(tree):
    return [f"{path}:{number}: {len(line)} columns; at most {COLUMNS_MAX}"
            for path in tree.files(suffixes=CPP)
            for number, line in enumerate(tree.lines(path), 1)
            if len(line) > COLUMNS_MAX and not _cannot_break(line)]


def check_functions(tree):
    problems = []
    for path in tree.files(suffixes=CPP):
        for head, at, count in functions(tree.lines(path)):
            name = head.split("(")[0].split()[-1]
            if count > FUNCTION_LINES_MAX and (str(path), name) not in LONG_FUNCTIONS:
                problems.append(f"{path}:{at}: {count} lines in one function; "
                                f"at most {FUNCTION_LINES_MAX}: {head[:60]}")
    return problems


def check_folders(tree):
    counts = Counter(path.parent for path in tree.files(suffixes=CPP))
    return [f"{folder}: {count} files; at most {FOLDER_FILES_MAX} lie in one folder: make rooms"
            for folder, count in sorted(counts.items())
            if count > FOLDER_FILES_MAX and str(folder) not in LARGE_FOLDERS]


def units_by_name(tree):
    """The units of each basename. A header and its sources, anywhere in a layer, are one unit."""
    units = {}
    for path in tree.files("include", "src", suffixes=CPP):
        inside = path.parts[2:] if path.parts[0] == "include" else path.parts[1:]
        if len(inside) < 2 or re.search(r"\.(test|model|bench)\.", path.name):
            continue
        folders = units.setdefault(path.stem, {}).setdefault(inside[0], set())
        if path.suffix in (".hpp", ".h"):
            folders.add("/".join(inside[:-1]))
    return {name: sorted(unit for layer, folders in layers.items() for unit in folders or {layer})
            for name, layers in units.items()}


def check_basenames(tree):
    units = units_by_name(tree)
    problems = [f"{name}: the name of {len(folders)} units ({', '.join(folders)}); at most "
                f"{NAMESAKES_MAX}: name a file for its main type"
                for name, folders in sorted(units.items())
                if len(folders) > NAMESAKES_MAX and name not in REPEATED_NAMES]
    return problems + [f"layout.py: {name} is the name of {len(units[name])} units: delete the line"
                       for name in sorted(REPEATED_NAMES)
                       if name in units and len(units[name]) <= NAMESAKES_MAX]


def check_format(tree):
    """What clang-format of Debian 12 would change; another version lays out otherwise."""
    paths = [str(path) for path in tree.files(suffixes=CPP)]
    asked = subprocess.run(["clang-format", "--dry-run", "--ferror-limit=1", *paths], cwd=tree.root,
                           capture_output=True, text=True)
    found = {line.split(":")[0] for line in asked.stderr.splitlines()
             if "clang-format-violations" in line}
    return [f"{path}: not as clang-format lays it out; run clang-format -i {path}"
            for path in sorted(found)]


def check_retired_words(tree):
    problems = []
    for path in tree.files("include", "src", "tests", "benches", suffixes=CPP):
        for number, line in enumerate(tree.lines(path), 1):
            # Asio's own names are Asio's.
            for name in IDENTIFIER.findall(re.sub(r'"(?:\\.|[^"\\])*"|\basio(?:_library)?::\w+|<(?:boost/)?asio/[^>]*>', "", line.split("//")[0])):
                retired = RETIRED_PART.search(name)
                if retired:
                    word = retired.group(1)
                    problems.append(f"{path}:{number}: `{name}`: say {RETIRED[word]} for {word}")
    return problems


def functions(lines):
    """(head, number of its first line, number of lines) of each function of a formatted file."""
    for i, line in enumerate(lines):
        if not line.endswith("{") or line.lstrip().startswith("//"):
            continue
        start = i
        while start > 0 and not STATEMENT_ENDS.search(lines[start - 1]):
            start -= 1
        head = " ".join(part.strip() for part in lines[start:i + 1])
        if "(" not in head or NO_FUNCTION.match(head) or LAMBDA.search(head) or "](" in head:
            continue
        close = re.match(r"\s*", lines[start]).group() + "}"
        for end in range(i + 1, len(lines)):
            if lines[end].startswith(close):
                yield head, start + 1, end - start + 1
                break


def _cannot_break(line):
    """One string, one address, or one line that a script reads."""
    return (re.match(r"\s*// (?:needs|expect|also|mutation): ", line)
            or re.fullmatch(r'\s*(?://\s*)?\S+|\s*[{(]*R?".*"\S*(?: \S+)?', line)) is not None
