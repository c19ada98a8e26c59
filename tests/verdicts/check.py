"""Each error of the public headers answers whose fault it was: the table in the sources beside this file has a row for each class that is
a troupe::error, and for each enumerator by which one tells its kinds apart; docs/protocols/verdicts.md shows the table.

Usage: check.py check | page      `page` writes the table into the page
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tidy"))
import _headers

HERE = pathlib.Path(__file__).resolve().parent
PAGE = ROOT / "docs/protocols/verdicts.md"
BEGIN, END = "<!-- made from tests/verdicts -->", "<!-- end -->"
ROW = re.compile(r'\{"([\w:]+)",\s*"([^"]*)",\s*(?:made<|failed\(|refuses\()[^;]*?\),\s*\{(\w+), (\w+), (\w+)\}\}', re.S)
BASES = re.compile(r"\b(?:class|struct)\s+\w+(?:\s+final)?\s*:\s*([^{;]*)$")
# By what each error tells its kinds apart, and the header that has the enumerators.
KINDS = {
    "database::error": ("database/error.hpp", "failure"),
    "tls_error": ("tls/error.hpp", "tls_failure"),
    "resolve_error": ("dns/error.hpp", "resolve_failure"),
    "nats::error": ("nats/error.hpp", "failure"),
    "cluster::error": ("cluster/error.hpp", "failure"),
    "http::client_error": ("http/client_error.hpp", "client_failure"),
    "http::origin_full": ("http/client_error.hpp", "limit"),
    "http::refused": ("http/fault.hpp", "fault"),
}
# Enumerators that are no kind of an error.
NO_KIND = {("http::refused", "none")}
# A wait follows from the verdict; only these say it: the base, which derives it, and what is told a time by somebody else.
WAITS = {"base/error.hpp", "kit/try_later.hpp"}
# What decides by errors asks them, and knows no list of their types.
DECIDE = ("src/kit/retry.cpp", "src/kit/circuit_breaker.cpp", "src/http/around/limits.cpp", "examples/proxy.cpp")
LISTS = re.compile(r"dynamic_cast<const|catch \(const (?:\w+::)*(?!error\b|cancelled\b)(\w*(?:error|full|_out|_open|closed|stopped|busy))\s*&")


def classes():
    """The name of each class in the headers, without troupe::, and the names of its bases."""
    found = []
    for header in sorted((ROOT / "include/troupe").rglob("*.hpp")):
        text = _headers.plain(header.read_text())
        scopes, begin = [], 0
        for at, letter in enumerate(text):
            if letter == "{":
                head = text[begin:at].strip()
                name = _headers.scope_of(head)
                bases = BASES.search(head)
                if name and bases:
                    inside = "::".join([*(scope for scope in scopes if scope), name])
                    found.append((inside.removeprefix("troupe::"), [base.split()[-1] for base in _headers.pieces(bases.group(1))]))
                scopes.append(name)
            elif letter == "}" and scopes:
                scopes.pop()
            if letter in "{};":
                begin = at + 1
    return found


def resolved(base, within, known):
    """The class that a name means in a scope: the innermost one that has it."""
    base = base.removeprefix("troupe::")
    parts = within.split("::")[:-1]
    for depth in range(len(parts), -1, -1):
        name = "::".join([*parts[:depth], base])
        if name in known and name != within:
            return name
    return None


def error_classes():
    all_classes, errors = classes(), {"error"}
    while True:
        names = {name for name, _ in all_classes}
        more = {name for name, bases in all_classes
                if any(base in ("troupe::error", "::troupe::error") or resolved(base, name, names | {"error"}) in errors for base in bases)} - errors
        if not more:
            return errors
        errors |= more


def rows():
    found = []
    for source in sorted(HERE.glob("*.cpp")):
        text = source.read_text()
        here = ROW.findall(text)
        if len(here) != len(re.findall(r"\{\w+, \w+, \w+\}\}", text)):
            sys.exit(f"{source.name}: a row is not understood")
        found += [(source.stem, *one) for one in here]
    return found


def enumerators(header, name):
    text = _headers.plain((ROOT / "include/troupe" / header).read_text())
    body = re.search(rf"\benum class {name}\b[^{{]*\{{([^}}]*)\}}", text).group(1)
    return [word.split("=")[0].strip() for word in body.split(",") if word.strip()]


def table():
    lines = ["| component | error | kind | whose fault | has it run | ask again |", "|---|---|---|---|---|---|"]
    grouped = []
    for component, error, kind, *verdict in rows():
        if grouped and grouped[-1][0] == (component, error, verdict):
            grouped[-1][1].append(kind)
        else:
            grouped.append(((component, error, verdict), [kind]))
    for (component, error, verdict), kinds in grouped:
        kind = "; ".join(f"`{one}`" for one in kinds if one)
        lines.append(f"| {component} | `{error}` | {kind} | {' | '.join(verdict)} |")
    return "\n".join(lines)


def page_parts():
    before, _, rest = PAGE.read_text().partition(BEGIN)
    made, _, after = rest.partition(END)
    return before, made.strip(), after


def check():
    wrong, have = [], {(error, kind.split(",")[0]) for _, error, kind, *_ in rows()}
    errors, listed = error_classes(), {error for error, _ in have}
    wrong += [f"{one}: it is an error, and no row of tests/verdicts says its verdict" for one in sorted(errors - listed)]
    wrong += [f"{one}: a row of tests/verdicts names it, and no header has it" for one in sorted(listed - errors)]
    for error, (header, name) in KINDS.items():
        for kind in enumerators(header, name):
            if (error, kind) not in have and (error, kind) not in NO_KIND:
                wrong.append(f"{error}: {name}::{kind} has no row in tests/verdicts")
    include = ROOT / "include/troupe"
    waits = {str(header.relative_to(include)) for header in include.rglob("*.hpp") if re.search(r"\btry_again_in\(\) const", header.read_text())}
    wrong += [f"include/troupe/{one}: try_again_in follows from judged(): do not override it" for one in sorted(waits - WAITS)]
    for path in DECIDE:
        for found in LISTS.finditer((ROOT / path).read_text()):
            if found.group(1) not in ("try_later", "timed_out"):
                wrong.append(f"{path}: '{found.group()}': decide by judged() alone")
    if page_parts()[1] != table():
        wrong.append("docs/protocols/verdicts.md: its table is not that of tests/verdicts: run tests/verdicts/check.py page")
    print("\n".join(wrong) or f"{len(errors)} classes, {len(rows())} rows")
    return 1 if wrong else 0


if sys.argv[1:] == ["page"]:
    first, _, last = page_parts()
    PAGE.write_text(f"{first}{BEGIN}\n{table()}\n{END}{last}")
elif sys.argv[1:] == ["check"]:
    sys.exit(check())
else:
    sys.exit(__doc__)
