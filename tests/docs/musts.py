"""Each demand of a standard in docs/protocols/http_musts.md has a test, and each test that this page and http2.md name exists.

Usage: musts.py check | page | numbers      `page` writes the section of what has no test into the page
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/protocols/http_musts.md"
HTTP2 = ROOT / "docs/protocols/http2.md"
LAST = "\n## Without a test\n"
WHO = {"server", "client", "proxy"}
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)
NAME = re.compile(r"`((\w+)\.(\w+)(?:: ([^`]+))?)`")
# The rows that the tests of a suite walk through lie in another file.
TABLES = {"http_parser": "src/http/h1/vectors.hpp"}


def tests():
    """(suite, test) -> the text of the file, with its table."""
    found = {}
    for folder in "tests", "src":
        for source in sorted((ROOT / folder).rglob("*.cpp")):
            text = source.read_text()
            for suite, test in TEST.findall(text):
                more = (ROOT / TABLES[suite]).read_text() if suite in TABLES else ""
                found[suite, test] = text + more
    for script in sorted((ROOT / "tests/examples").glob("*.py")):
        text = script.read_text()
        for function in re.findall(r"^def (\w+)\(", text, re.M):
            found[script.stem, function] = text
    return found


def rows(text):
    """(standard, section, demand, who, test) of each row of the tables."""
    standard = None
    for line in text.splitlines():
        if line.startswith("## "):
            about = re.match(r"## (RFC \d+)", line)
            standard = about and about.group(1)
        elif standard and line.startswith("| ") and not line.startswith("| section "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            yield (standard, *cells) if len(cells) == 4 else (standard, line, "", "", "")


def has_none(row):
    return row[4] == "none"


def without_test(text):
    return "\n".join(f"- {row[0]}, {row[1]}, {row[3]}: {row[2]}" for row in rows(text) if has_none(row)) or "Nothing."


def wrong_rows(text, known):
    for row in rows(text):
        where = f"{PAGE.name}: {row[0]}, {row[1]}"
        if len(row[3]) == 0 or not {who.strip() for who in row[3].split(",")} <= WHO:
            yield f"{where}: a row has a section, a demand, who it concerns, and tests"
            continue
        yield from wrong_names(where, row[4], known)
        if not NAME.search(row[4]) and not has_none(row) and not re.match(r"not applicable: |does not hold: D\d", row[4]):
            yield f"{where}: '{row[4]}' names no test; write 'none', or 'not applicable: ' and why"


def wrong_names(where, cell, known):
    for name, suite, test, label in NAME.findall(cell):
        if (suite, test) not in known:
            yield f"{where}: there is no test {suite}.{test}"
        elif label and f'"{label}' not in known[suite, test]:
            yield f"{where}: {suite}.{test} has no row '{label}'"


def wrong_http2(text, known):
    """A name without a suite is one of the suite that the page names in front of the table, or of that of the name before."""
    suite, is_table = None, False
    for line in text.splitlines():
        of = re.search(r"test without a suite is one of `(\w+)`", line)
        suite = of.group(1) if of else suite
        is_table = line.startswith("|") and (is_table or line.endswith("| test |"))
        last = suite
        for name in re.findall(r"`([\w.]+)`", line.strip("|").split(" | ")[-1]) if is_table else ():
            before, _, test = name.rpartition(".")
            candidates = [before] if before else [last, suite, *{one for one, other in known if other == test and one.startswith(suite)}]
            fits = [one for one in candidates if (one, test) in known]
            if not fits and (before or test not in {one for one, _ in known}):
                yield f"{HTTP2.name}: there is no test {name}"
            last = fits[0] if fits else last


def numbers(text):
    count = collections.Counter()
    for row in rows(text):
        kind = row[4].split(":")[0] if re.match("none|not applicable|does not hold", row[4]) else "tested"
        for who in row[3].split(","):
            count[row[0], who.strip(), kind] += 1
    for key in sorted(count):
        print(f"{', '.join(key)}: {count[key]}")


def check():
    text, _, last = PAGE.read_text().partition(LAST)
    known = tests()
    wrong = [*wrong_rows(text, known), *wrong_http2(HTTP2.read_text(), known)]
    if last.strip() != without_test(text):
        wrong.append(f"{PAGE.name}: its last section is not what has no test: run tests/docs/musts.py page")
    print("\n".join(wrong) or f"{len(list(rows(text)))} demands")
    return 1 if wrong else 0


if sys.argv[1:] == ["check"]:
    sys.exit(check())
elif sys.argv[1:] == ["page"]:
    first, _, _ = PAGE.read_text().partition(LAST)
    PAGE.write_text(f"{first}{LAST}\n{without_test(first)}\n")
elif sys.argv[1:] == ["numbers"]:
    numbers(PAGE.read_text().partition(LAST)[0])
else:
    sys.exit(__doc__)
