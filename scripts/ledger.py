"""The ledger: how many cases each suite ran at least once, so that none is lost unseen.

Usage: ledger.py files [ROOT]     are the files well formed, and was no count lowered since it was committed?
       ledger.py skips [ROOT]     does each skip in the tests begin with a listed condition, and is each of these used?

ROOT is the checkout. In tests/ledger, CONFIGURATION.txt has a line `SUITE COUNT` for each suite that ctest names, in order of
names. Under a suite, an indented line `-N REASON` takes N cases away that were removed or moved to --deep on purpose;
the suite must then run COUNT - N cases. Counts only grow (`./test --update-ledger`). skips.txt lists the conditions
under which a case may be skipped; README.md says how both are used.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REASON_WORDS_MIN = 3

# What a kind of condition means for a run: is its skip counted as one, and is the case excused from the ledger?
# A case that its setting, build or depth leaves out is run by another setting, configuration or by --deep.
COUNTED = {"tool": True, "machine": True, "asked": True, "setting": False, "build": False, "deep": False}
EXCUSED = {"tool", "machine", "asked"}


class Malformed(Exception):
    """A line of the ledger that cannot be read; the text names the file, the line and the remedy."""


@dataclasses.dataclass
class Entry:
    count: int
    removals: list = dataclasses.field(default_factory=list)  # of (cases, reason)

    def expected(self):
        return self.count - sum(cases for cases, _ in self.removals)


@dataclasses.dataclass
class Condition:
    text: str
    kind: str
    remedy: str


def parse(text, name):
    """{suite: Entry} of the text of a ledger called NAME."""
    entries, last = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        removal = re.fullmatch(r"  -([1-9]\d*) +(\S.*)", line)
        suite = re.fullmatch(r"(\S+) ([1-9]\d*)", line)
        if removal and last is not None:
            if len(removal[2].split()) < REASON_WORDS_MIN:
                raise Malformed(f"{name}:{number}: '{removal[2]}' is no reason; say in a sentence why cases are gone")
            entries[last].removals.append((int(removal[1]), removal[2]))
            if entries[last].expected() < 0:
                raise Malformed(f"{name}:{number}: takes more cases from {last} than it has")
        elif suite:
            if last is not None and suite[1] <= last:
                raise Malformed(f"{name}:{number}: {suite[1]} is not in order after {last}; each suite has one line")
            last = suite[1]
            entries[last] = Entry(int(suite[2]))
        else:
            raise Malformed(f"{name}:{number}: '{line}' is neither `SUITE COUNT` nor, under one, `  -N REASON`")
    return entries


def format_ledger(entries, comment):
    lines = [comment] if comment else []
    for suite in sorted(entries):
        lines.append(f"{suite} {entries[suite].count}")
        lines += [f"  -{cases} {reason}" for cases, reason in entries[suite].removals]
    return "\n".join(lines) + "\n"


def parse_conditions(text, name):
    """The conditions of skips.txt, `CONDITION | KIND | REMEDY` a line, by their texts."""
    conditions = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise Malformed(f"{name}:{number}: '{line}' is not `CONDITION | KIND | REMEDY`")
        if parts[1] not in COUNTED:
            raise Malformed(f"{name}:{number}: no kind '{parts[1]}'; it is one of {', '.join(COUNTED)}")
        if parts[1] == "tool" and not re.search(r"apt-get install \S", parts[2]):
            raise Malformed(f"{name}:{number}: the remedy of a tool has the words `apt-get install PACKAGE`")
        if parts[0] in conditions:
            raise Malformed(f"{name}:{number}: '{parts[0]}' is listed twice")
        conditions[parts[0]] = Condition(*parts)
    return conditions


def condition_of(reason, conditions):
    """The listed condition that this reason of a skip begins with (`CONDITION` or `CONDITION: why`), or None."""
    return conditions.get(reason) or conditions.get(reason.split(":")[0].strip())


def is_installed(package):
    """Is this Debian package installed? Without dpkg nothing is known to be."""
    try:
        state = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
                               capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return state.stdout == "installed"


def has_all(condition, installed=is_installed):
    packages = re.search(r"apt-get install ([^;,()]*)", condition.remedy)[1].split()
    return all(installed(package) for package in packages)


def judge_skips(suites, conditions, installed=is_installed):
    """(complaints, skipped, not_applicable, excused) with excused a number for each suite's name.

    A suite has `name`, and `skips`: the reasons given by its skipped cases, '' for a case that gave none."""
    complaints, skipped, not_applicable, excused = [], 0, 0, {}
    for suite in suites:
        for reason in suite.skips:
            condition = condition_of(reason, conditions)
            if condition is None:
                said = f"for an unlisted reason: {reason}" if reason else "without a reason"
                complaints.append((suite.name, f"{suite.name} skipped a case {said}; begin the reason with a "
                                               "condition of tests/ledger/skips.txt, or list a new one there"))
                skipped += 1
                continue
            if condition.kind == "deep" and os.environ.get("TROUPE_DEEP"):
                complaints.append((suite.name, f"{suite.name} skipped a case under --deep: {reason}; --deep runs all"))
            if condition.kind == "tool" and has_all(condition, installed):
                complaints.append((suite.name, f"{suite.name} skipped a case for want of what is installed: "
                                               f"{reason} ({condition.remedy}); mend how the test looks for it"))
            if COUNTED[condition.kind]:
                skipped += 1
            else:
                not_applicable += 1
            if condition.kind in EXCUSED:
                excused[suite.name] = excused.get(suite.name, 0) + 1
    return complaints, skipped, not_applicable, excused


def judge_counts(suites, entries, excused, configuration, partial):
    """Complaints about suites that ran fewer cases than the ledger has, each (suite, text).

    A suite that failed is reported by its failure. PARTIAL: only the suites that ran are judged."""
    complaints = []
    ran = {suite.name: suite for suite in suites}
    for name, entry in entries.items():
        if name not in ran and (partial or entry.expected() == 0):
            continue
        executed = ran[name].passed + ran[name].failed if name in ran else 0
        if name in ran and ran[name].failure is not None:
            continue
        lost = entry.expected() - executed - excused.get(name, 0)
        if lost <= 0:
            continue
        state = f"ran {executed}" if name in ran else "is missing"
        file = f"tests/ledger/{configuration}.txt"
        complaints.append((name, f"{name} has {entry.expected()} cases in {file} and {state}: {lost} fewer.\n"
                                 f"Bring them back; or, if they were removed or moved to --deep on purpose, write "
                                 f"under the line `{name} {entry.count}` of that file:\n  -{lost} REASON"))
    return complaints


def raised(entries, suites):
    """(the entries with what these suites ran beyond them, how many cases that is). A suite that failed adds none."""
    result, added = dict(entries), 0
    for suite in suites:
        executed = suite.passed + suite.failed
        if suite.failure is not None or executed == 0:
            continue
        entry = result.get(suite.name, Entry(0))
        more = executed - entry.expected()
        if more > 0:
            result[suite.name] = Entry(entry.count + more, entry.removals)
            added += more
    return result, added


def read_file(path, parser):
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    return parser(text, path.name)


def write(path, entries):
    comment = f"# Cases that each suite runs in {path.stem}: see README.md; raised by ./test --update-ledger"
    path.write_text(format_ledger(entries, comment))


def lowered(entries, before, when):
    """Counts that are lower than they were in an earlier version of the file."""
    return [f"{suite}: the count is {entries[suite].count if suite in entries else 'gone'}, and was {old.count} {when}; "
            f"counts only grow: restore it and write `  -N REASON` under it"
            for suite, old in before.items()
            if suite not in entries or entries[suite].count < old.count]


def lowered_since(entries, versions, name):
    """What `lowered` says of the newest of these versions, (commit, text), that has a higher count for a suite."""
    found = {}
    for commit, text in versions:
        try:
            before = parse(text, name)
        except Malformed:
            continue
        for suite, old in before.items():
            if suite not in found:
                found.update({suite: line for line in lowered(entries, {suite: old}, f"in {commit}")})
    return list(found.values())


def earlier_versions(path):
    """The texts that git has of this file, the newest first, as (commit, text); none outside a checkout."""
    def git(*words):
        done = subprocess.run(["git", "-C", str(path.parent), *words], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""
    for commit in git("log", "--format=%h", "--", path.name).split():
        text = git("show", f"{commit}:./{path.name}")
        if text:
            yield commit, text


def check_files(root):
    problems, folder = [], root / "tests" / "ledger"
    for path in sorted(folder.glob("[a-z]*.txt")):
        try:
            if path.name == "skips.txt":
                parse_conditions(path.read_text(), path.name)
                continue
            entries = parse(path.read_text(), path.name)
        except Malformed as problem:
            problems.append(str(problem))
            continue
        problems += [f"{path.name}: {line}" for line in lowered_since(entries, earlier_versions(path), path.name)]
    return problems


def skips_in_cpp(text):
    """(line, reason or None) for each GTEST_SKIP() of a source; None where the reason is not a text of its own."""
    for found in re.finditer(r"GTEST_SKIP\(\)\s*(;|<<\s*(\"?)([^\";]*))", text):
        line = text.count("\n", 0, found.start()) + 1
        if found[1] == ";":
            yield line, ""
        else:
            yield line, found[3] if found[2] else None


def skips_in_script(text):
    """(line, reason) for each reason that a script prints, or hands to its skip()."""
    for found in re.finditer(r"""(?:\bskipped: |\bskip\(f?")(?=needs )([^"'\n]*)""", text):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def check_skips(root):
    conditions = parse_conditions((root / "tests" / "ledger" / "skips.txt").read_text(), "skips.txt")
    problems, used = [], set()
    sources = [path for folder in ("src", "tests") for path in sorted((root / folder).rglob("*"))
               if path.suffix in (".cpp", ".hpp", ".py", ".sh") and path.parent.name != "ledger"]
    for path in sources:
        text = path.read_text(errors="replace")
        found = list((skips_in_cpp if path.suffix in (".cpp", ".hpp") else skips_in_script)(text))
        for line, reason in found:
            if reason is None or re.search(r"[{$]", reason.split(":")[0]):  # a variable, which judge_skips sees
                continue
            condition = condition_of(reason, conditions)
            if condition is None:
                problems.append(f"{path.relative_to(root)}:{line}: skips for '{reason}', which begins with no condition "
                                "of tests/ledger/skips.txt")
        used |= {condition for condition in conditions if condition in text}
        used |= {condition for condition in conditions if named_by_parts(condition, text)}
    problems += [f"skips.txt: no test uses '{condition}'; delete the line" for condition in conditions if condition not in used]
    return problems


def named_by_parts(condition, text):
    """Does a test say `needs {thing}` or `needs $thing` and name the thing, or a component, elsewhere?"""
    thing = condition.removeprefix("needs ").removeprefix("the component ")
    return re.search(r"needs (?:\{|\$|the component \{)", text) is not None and thing in text


def main():
    checks = {"files": check_files, "skips": check_skips}
    if sys.argv[1:2] not in ([name] for name in checks):
        print(__doc__, file=sys.stderr)
        return 2
    problems = checks[sys.argv[1]](pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT)
    print("\n".join(problems) or "ledger: no problem")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
