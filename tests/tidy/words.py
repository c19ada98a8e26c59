"""Counts phrases that make a text hard to read, and variables whose name says nothing: members reached through them
(`of.counts`) and their declarations (`request& what`).
`words.txt` holds the counts of today as upper bounds: a change may remove such a phrase, and may not add one.

words.py          checks
words.py show     prints the counts, by pattern and place
words.py list PATTERN [PLACE]     prints each occurrence
words.py update   lowers the bounds to the counts; it never raises one
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = pathlib.Path(__file__).resolve().parent / "words.txt"
HEAD = """# The most that words.py may count of each pattern in each place; lowered with `words.py update`:
# PLACE PATTERN COUNT
"""
# So many fewer than the bound fail: less is left for the next update, because several branches may change this file.
SLACK = 10
SHOWN_MAX = 20

# A question may begin with `what` and `who`; `what()` is a function.
QUESTION = r"(?![^.;:]*\?|\()"
LEADS_TO_WHO = (r"(?:[.;:(,]|\n\n|\b(?:of|by|to|for|that|with|from|is|and|or|but|than|as|not|sees?|names?|says?|tells?|knows?|"
                r"shows?|at|in|on|decides?|asks?))\s+")
TEXT = {
    "what": rf"\bwhat\b{QUESTION}",
    "who": rf"{LEADS_TO_WHO}who\b{QUESTION}",
    "come_gone": r"\b(?:has|have|had|is|are|was|were)\s+(?:come|gone)\b",
    "that_of": r"\b(?:that|those)\s+of\b",
    "bare_one": r"\b(?:other|another|(?<!one\s)(?:is|was|are|as|by|with|for|to|of|in|has|have|takes|needs|gets|without|than|into|from))"
                r"\s+one(?=\s*[.,;:)])",
    "too": r",\s+too\b",
    "also_when": r"\balso\s+(?:when|if|for|in|to|on|after|with|by|at|where|while|under|from|those|of|as|before|without)\b",
    "person": r"\b(?:nobody|somebody|hears?|heard|knows|wants?|(?:is|are|was|were|be|been|being)\s+(?:told|away))\b",
    "so": r"(?:[.:;?|]\s+|\n\n\s*)so\b(?!\s+(?:that|many|much|far|long)\b)|,\s+so\b(?!\s+that\b)",
    "phrase": r"\b(?:goes?\s+on|for\s+ever|as\s+it\s+was|stands?|at\s+the\s+place|what\s+is\s+left)\b",
}
WORDS = ("one", "made", "of", "to", "who", "in", "its", "here")
# Two that stay: the system's header `netinet/in.h`, and `message.to.key`, the address of a durable message or reminder.
BEFORE, AFTER = {"in": r"(?<!netinet/)"}, {"to": r"(?!(?:kind|key)\b)"}
MEMBERS = {word: rf"{BEFORE.get(word, '')}\b{word}_?(?:\.|->)(?=\w){AFTER.get(word, '')}" for word in WORDS}
# `to` may be declared: the destination of a copy, a send or a conversion, as `from` is the source; `in` only beside `out`.
DECLARED = [word for word in (*WORDS, "what") if word != "to"]
NO_TYPE = "".join(rf"(?<!\b{word})" for word in ("return", "co_return", "co_await", "co_yield", "throw", "case", "else", "not",
                                                "and", "or", "new", "delete", "goto", "operator", "namespace"))
BEHIND = {"in": r"(?![^{}]{0,120}\bout_?\b)"}
DECLARATIONS = {word: rf"(?:(?:\w{NO_TYPE}|(?<![\s-])>)(?:\s+|[&*]+\s+)|\.\.\.\s*){word}_?(?=\s*(?:[,)=;{{\[]|:(?!:)))"
                      rf"{BEHIND.get(word, '')}"
                      rf"|[\[,]\s*&?{word}(?=\s*=(?!=))"
                      rf"|\bauto[\s&]*\[(?:[^\]]*[\s&,])?{word}(?=\s*[,\]])" for word in DECLARED}
PATTERNS = {place: {name: re.compile(regex, re.I) for name, regex in TEXT.items()}
            for place in ("guide", "pages", "headers", "sources", "errors")}
PATTERNS["members"] = {name: re.compile(regex) for name, regex in MEMBERS.items()}
PATTERNS["declared"] = {name: re.compile(regex) for name, regex in DECLARATIONS.items()}

FENCE = re.compile(r"^( *)```.*?^ *```[^\n]*$", re.M | re.S)
INLINE = re.compile(r"`(?:[^`\n]|\n(?!\n))*`|(?<=\])\([^)\s]*\)|<!--.*?-->", re.S)
TOKEN = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
                   r"|(?<![0-9a-zA-Z])'(?:\\.|[^'\\\n])+'", re.S)
ERROR = re.compile(r'"troupe: (?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def prose(text):
    """Markdown without its code and the targets of its links; every character keeps its place."""
    text = FENCE.sub(lambda found: blank(found.group()), text)
    return INLINE.sub(lambda found: re.sub(r"[^\n]", "_", found.group()), text)


def newest_section(text):
    """The first section of a list of changes."""
    return "".join(re.split(r"(?m)^(?=## )", text)[:2])


def split(text):
    """The comments of a source, its error texts, and its code without either."""
    comments, code, last = [], [], 0
    for token in TOKEN.finditer(text):
        between = text[last:token.start()]
        comments.append(blank(between))
        code.append(between)
        if token.group("comment"):
            comments.append(re.sub(r"^//[/!<]*|^/\*+|\*/$", blank_mark, token.group()))
        else:
            comments.append(blank(token.group()))
        code.append(blank(token.group()))
        last = token.end()
    comments.append(blank(text[last:]))
    code.append(text[last:])
    errors, last = [], 0
    for found in ERROR.finditer(text):
        errors += [blank(text[last:found.start()]), found.group().replace('"', " ")]
        last = found.end()
    errors.append(blank(text[last:]))
    return "".join(comments), "".join(errors), "".join(code)


def blank_mark(found):
    return " " * len(found.group())


def files(root):
    """Known to git, or all of them in an unpacked archive."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0 and (root / ".git").exists():
        names = set(listed.stdout.split("\0")) - {""}
    else:
        names = {str(path.relative_to(root)) for path in root.rglob("*")}
    return [pathlib.Path(name) for name in sorted(names) if (root / name).is_file()]


def texts(root):
    """(place, path, text) of everything that is read."""
    for path in files(root):
        top, name = path.parts[0], str(path)
        if path.suffix == ".md" and not name.startswith(("docs/decisions/", "tests/", "benches/", "build/")):
            text = (root / path).read_text()
            guide = str(path.parent) in (".", "docs", "docs/guide")
            yield "guide" if guide else "pages", path, prose(newest_section(text) if name == "CHANGELOG.md" else text)
        elif top in ("include", "src") and path.suffix in (".hpp", ".h", ".cpp") \
                and not re.search(r"\.(test|model|bench)\.", path.name):
            comments, errors, code = split((root / path).read_text())
            yield "sources" if path.suffix == ".cpp" else "headers", path, comments
            yield "errors", path, errors
            yield "members", path, code
            yield "declared", path, code


def occurrences(root):
    """For each place and pattern the list of (path, line)."""
    found = {(place, name): [] for place, patterns in PATTERNS.items() for name in patterns}
    for place, path, text in texts(root):
        for name, pattern in PATTERNS[place].items():
            for hit in pattern.finditer(text):
                at = re.search(r"\w+_?(?:\.|->)?$", hit.group().rstrip()).start() + hit.start()
                found[place, name].append((str(path), text.count("\n", 0, at) + 1))
    return found


def added_lines(root):
    """The lines that were added since the bounds were changed, as (path, line); None if git cannot tell."""
    def git(*command):
        return subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True)
    base = git("log", "-1", "--format=%H", "--", str(LIST.relative_to(root)) if LIST.is_relative_to(root) else str(LIST))
    if base.returncode or not base.stdout.strip():
        return None
    added, path = set(), None
    for line in git("diff", "-U0", "--no-color", "--no-ext-diff", base.stdout.strip()).stdout.splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if hunk:
            added.update((path, int(hunk[1]) + i) for i in range(int(hunk[2] or 1)))
    for path in git("ls-files", "-z", "--others", "--exclude-standard").stdout.split("\0"):
        if path and (root / path).suffix in (".md", ".hpp", ".h", ".cpp"):
            added.update((path, i + 1) for i in range(len((root / path).read_text().splitlines())))
    return added


def read():
    bounds = {}
    for line in LIST.read_text().splitlines() if LIST.exists() else []:
        if line and not line.startswith("#"):
            place, name, count = line.split()
            bounds[place, name] = int(count)
    return bounds


def check(root):
    bounds, wrong, added = read(), [], None
    for key, found in occurrences(root).items():
        place, name = key
        bound = bounds.pop(key, None)
        if bound is None:
            wrong.append(f"{LIST.name}: {place} {name} is missing: run `words.py update`")
        elif len(found) > bound:
            added = added_lines(root) if added is None else added
            newest = [hit for hit in found if added and hit in added] or found[-SHOWN_MAX:]
            wrong.append(f"{len(found)} of {name} in {place}, {bound} are allowed; the newest, to be written in other words: "
                         + ", ".join(f"{path}:{line}" for path, line in newest[:SHOWN_MAX]))
        elif len(found) < bound - SLACK or (bound and not found):
            wrong.append(f"{len(found)} of {name} in {place}, {bound} are allowed: lower the bound with `words.py update`")
    return wrong + [f"{LIST.name}: {place} {name} is no pattern any more: run `words.py update`" for place, name in bounds]


def update(root):
    bounds = read()
    lines = [f"{place} {name} {min(len(found), bounds.get((place, name), len(found)))}"
             for (place, name), found in occurrences(root).items()]
    LIST.write_text(HEAD + "\n".join(lines) + "\n")


def show(root):
    found = occurrences(root)
    places = [place for place in PATTERNS if place not in ("members", "declared")]
    print(f"{'':12}" + "".join(f"{place:>9}" for place in places))
    for name in TEXT:
        print(f"{name:12}" + "".join(f"{len(found[place, name]):9}" for place in places))
    print("\nmembers through " + ", ".join(f"{word} {len(found['members', word])}" for word in WORDS))
    print("declarations of " + ", ".join(f"{word} {len(found['declared', word])}" for word in DECLARED))


def main():
    if sys.argv[1:] == ["show"]:
        return show(ROOT)
    if sys.argv[1:] == ["update"]:
        return update(ROOT)
    if sys.argv[1:2] == ["list"]:
        for (place, name), found in occurrences(ROOT).items():
            if name == sys.argv[2] and place in (sys.argv[3:4] or [place]):
                for path, line in found:
                    print(f"{path}:{line}: {(ROOT / path).read_text().splitlines()[line - 1].strip()}")
        return 0
    wrong = check(ROOT)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
