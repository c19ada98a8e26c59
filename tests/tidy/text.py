"""Rules that can be read off the text of a file: length, words, sleeps, memory orders, names."""

import re

LINES_MAX = 1000
CHAPTER_LINES_MAX = 300
CODE = (".hpp", ".h", ".cpp", ".c", ".py", ".sh", ".cmake", ".txt", ".md")
CPP = (".hpp", ".h", ".cpp", ".c")

# Written in halves, so that this file passes its own rule.
WORDS = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b"
                   r"|\bDISABLED_\w")

# Blocking the thread. troupe's own sleep_for suspends a turn and is not meant.
SLEEP = re.compile(r"this_thread::sleep_|\b(?:usleep|nanosleep)\s*\(|(?<![\w.>])::sleep\s*\("
                   r"|\btime\.sleep\(|^\s*sleep [0-9]")
SLEEP_REACH_LINES = 3
SLEEP_REASON = re.compile(r"(//|#) sleeps: \S")

ORDER = re.compile(r"\bmemory_order(?:_|::)(relaxed|consume|acquire|release|acq_rel|seq_cst)\b")
# An atomic access that names no order means seq_cst; these forms are hardly ever anything else.
DEFAULT_ORDER = re.compile(r"\.load\(\)|\.fetch_(?:add|sub|or|and|xor)\([^,()]*\)")
ORDER_REASON = re.compile(r"//.*\border: \S")
ORDER_REACH_LINES = 6

KEPT_MEMORY = re.compile(r"^\s*(?:if \(.*\) )?[\w.>-]+ = (?:std::)?string(?:\(\)|\{\});")

NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
# Names that a tool prescribes.
FIXED_NAMES = re.compile(r"CMakeLists\.txt|[A-Z]+\.md|troupe-config\.cmake\.in|__init__\.py|__main__\.py")


def check_length(tree):
    problems = []
    for path in tree.files("include", "src"):
        count = len(tree.lines(path))
        if count > LINES_MAX:
            problems.append(f"{path}: {count} lines; split it by noun at {LINES_MAX}")
    for path in tree.files("docs"):
        count = len(tree.lines(path))
        if path.parts[1] == "guide" and count > CHAPTER_LINES_MAX:
            problems.append(f"{path}: {count} lines; a chapter has at most {CHAPTER_LINES_MAX}")
    return problems


def check_words(tree):
    return _search(tree.files(suffixes=CODE), tree, lambda line: WORDS.search(line),
                   "leaves something open; finish it")


def check_sleeps(tree):
    problems = []
    for path in tree.files("src", "tests", suffixes=CODE):
        lines = tree.lines(path)
        for i, line in enumerate(lines):
            near = lines[max(0, i - SLEEP_REACH_LINES):i + SLEEP_REACH_LINES + 1]
            if SLEEP.search(line) and not any(SLEEP_REASON.search(one) for one in near):
                problems.append(f"{path}:{i + 1}: sleeps; use virtual time or a latch, or say why: "
                                f"`// sleeps: reason`: {line.strip()}")
    return problems


def check_orders(tree):
    problems = []
    for path in tree.files("include", "src", suffixes=CPP):
        lines = tree.lines(path)
        tested = not path.name.endswith((".test.cpp", ".model.cpp"))
        for i, line in enumerate(lines):
            code = line.split("//")[0]
            named = ORDER.search(code)
            if not named and not (tested and DEFAULT_ORDER.search(code)):
                continue
            if not any(ORDER_REASON.search(near) for near in lines[max(0, i - ORDER_REACH_LINES):i + 1]):
                what = named.group() if named else "an access that names no order"
                problems.append(f"{path}:{i + 1}: {what} without a line `// order: ...`")
    return problems


def check_kept_memory(tree):
    return _search(tree.files("include", "src", suffixes=CPP), tree, KEPT_MEMORY.search,
                   "keeps the memory of the text; say base::release(text), or text.clear() if it may stay")


def check_names(tree):
    return [f"{path}: file names are lowercase snake_case"
            for path in tree.files(suffixes=CODE)
            if not NAME.fullmatch(path.name) and not FIXED_NAMES.fullmatch(path.name)]


def _search(paths, tree, bad, complaint):
    return [f"{path}:{number}: {complaint}: {line.strip()}"
            for path in paths for number, line in enumerate(tree.lines(path), 1) if bad(line)]
