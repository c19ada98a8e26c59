"""Reads what ctest wrote for one configuration, shows the failures and judges the run by the ledger.

Usage: test_report.py JUNIT.xml... CONFIGURATION [--ledger FOLDER [--partial] [--update-ledger]]

What ctest runs is one test, or a GoogleTest program with one suite of them, whose own counts are taken then.
Failures go to standard error, each with the end of its output and the command that repeats it.
With --ledger, a suite that ran fewer cases than the ledger has, and a skip for a reason that is not listed, are
failures as well (see ledger.py); --partial judges only the suites that ran, --update-ledger adds what is new.
Standard output is one line: PASSED FAILED SKIPPED.
"""

import argparse
import dataclasses
import pathlib
import re
import sys
import xml.etree.ElementTree

import ledger

OUTPUT_LINES_MAX = 60


@dataclasses.dataclass
class Suite:
    """What ctest ran under one name."""
    name: str
    passed: int = 0
    failed: int = 0
    skips: list = dataclasses.field(default_factory=list)  # the reasons, '' where none was given
    failure: str | None = None  # the output, if it failed


def count(output, kind):
    """How many tests a GoogleTest program says were KIND, or None when the output is not of such a program."""
    found = re.search(rf"^\[ *{kind} *\] (\d+) tests?\b", output, re.MULTILINE)
    return int(found[1]) if found else None


def failures_in(output):
    """How many tests a GoogleTest program names as failed; one, if none, for it failed all the same."""
    return len(set(re.findall(r"^\[ *FAILED *\] ([^\s,]*[^\s\d,][^\s,]*)", output, re.MULTILINE))) or 1


def skips_in(output):
    """The reasons of the tests that a GoogleTest program skipped, '' where none was given."""
    skipped = count(output, "SKIPPED") or 0
    reasons = [reason.strip() for reason in re.findall(r"^\S+:\d+: Skipped\n(.*)$", output, re.MULTILINE)]
    return (reasons + [""] * skipped)[:skipped]


def skips_of_script(output, whole):
    """The reasons that a script gives in lines `NAME: skipped: REASON`, or `NAME: partly skipped: REASON` where it did
    the rest. One that skipped the WHOLE without a reason gives ''."""
    kind = "skipped" if whole else "partly skipped"
    reasons = re.findall(rf"^(?:[\w ]+: )?{kind}: (.+)$", output, re.MULTILINE)
    return [reason.strip() for reason in reasons] or [""] * whole


def read(path):
    """What ctest ran, a Suite each."""
    suites = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        suite = Suite(case.get("name"))
        suites.append(suite)
        reason = case.find("skipped")
        output = case.findtext("system-out", "")
        inside = count(output, "PASSED")
        suite.skips = skips_in(output)
        if case.get("status") == "run":
            suite.passed = 1 if inside is None else inside
            suite.skips += skips_of_script(output, whole=False) if inside is None else []
        elif case.get("status") == "disabled" or (
                reason is not None and reason.get("message", "").startswith("SKIP_")):
            suite.skips += skips_of_script(output, whole=True)
        else:
            # Whatever else ctest may say (fail, not run for want of a program) is no success.
            suite.passed = inside or 0
            suite.failed = failures_in(output)
            failure = case.find("failure")
            said = [e.get("message", "") for e in (reason, failure) if e is not None]
            suite.failure = "\n".join([output.rstrip(), *said])
    return suites


def describe(name, output, configuration):
    lines = output.rstrip().splitlines()
    shown = lines[-OUTPUT_LINES_MAX:]
    if len(lines) > len(shown):
        shown.insert(0, f"... {len(lines) - len(shown)} lines above")
    pattern = "^" + re.sub(r"[^\w/.: -]", ".", name) + "$"
    repeat = f"./test --in {configuration} --only '{pattern}'"
    return "\n".join([f"--- {name}", *("    " + line for line in shown), f"    repeat: {repeat}"])


def judge(suites, wanted):
    """(complaints, skipped) by the ledger, which is raised if that is WANTED."""
    folder = pathlib.Path(wanted.ledger)
    conditions = ledger.read_file(folder / "skips.txt", ledger.parse_conditions) or {}
    complaints, skipped, not_applicable, excused = ledger.judge_skips(suites, conditions)
    if not_applicable > 0:
        print(f"{wanted.configuration}: {not_applicable} cases are left to another setting, configuration or --deep",
              file=sys.stderr)
    path = folder / f"{wanted.configuration}.txt"
    entries = ledger.read_file(path, ledger.parse)
    if entries is None and not wanted.update_ledger:
        return complaints, skipped
    complaints += ledger.judge_counts(suites, entries or {}, excused, wanted.configuration, wanted.partial)
    more, added = ledger.raised(entries or {}, suites)
    if added > 0 and wanted.update_ledger:
        ledger.write(path, more)
        print(f"{wanted.configuration}: {added} cases more are in {path}; commit it", file=sys.stderr)
    elif added > 0:
        print(f"{wanted.configuration}: {added} cases are not in the ledger yet; ./test --update-ledger adds them",
              file=sys.stderr)
    return complaints, skipped


def main(words=None):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("junit", nargs="+")
    parser.add_argument("configuration")
    parser.add_argument("--ledger")
    parser.add_argument("--partial", action="store_true")
    parser.add_argument("--update-ledger", action="store_true")
    wanted = parser.parse_args(words)

    suites = [suite for path in wanted.junit for suite in read(path)]
    for suite in suites:
        if suite.failure is not None:
            print(describe(suite.name, suite.failure, wanted.configuration), file=sys.stderr)
    complaints, skipped = [], sum(len(suite.skips) for suite in suites)
    if wanted.ledger:
        try:
            complaints, skipped = judge(suites, wanted)
        except ledger.Malformed as problem:
            complaints = [("ledger", str(problem))]
    # The cases of a suite that skip for the same reason are one complaint.
    complaints = list(dict.fromkeys(complaints))
    for name, text in complaints:
        print(describe(name, text, wanted.configuration).replace("--- ", "--- ledger: ", 1), file=sys.stderr)
    print(sum(suite.passed for suite in suites), sum(suite.failed for suite in suites) + len(complaints), skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
