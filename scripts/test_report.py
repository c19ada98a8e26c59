"""Reads what ctest wrote for one configuration, shows the failures and judges the run by the ledger.

Usage: test_report.py JUNIT.xml... CONFIGURATION [--again JUNIT.xml...] [--ledger FOLDER [--partial] [--update-ledger]]

Failures go to standard error, each with the end of its output and the command that repeats it.
With --ledger, a suite that ran fewer cases than the ledger has, and a skip for a reason that is not listed, are
failures as well (see ledger.py); --partial judges only the suites that ran, --update-ledger adds what is new.
--again has what the suites did that ran again (see flakes.py).
Standard output is one line: PASSED FAILED SKIPPED.
"""

import argparse
import pathlib
import re
import sys

import flakes
import junit
import ledger

OUTPUT_LINES_MAX = 60


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
    parser.add_argument("--again", nargs="*", default=[])
    parser.add_argument("--ledger")
    parser.add_argument("--partial", action="store_true")
    parser.add_argument("--update-ledger", action="store_true")
    wanted = parser.parse_args(words)

    suites = [suite for path in wanted.junit for suite in junit.read(path)]
    suites, flaky = flakes.settle(suites, [{suite.name: suite for suite in junit.read(path)} for path in wanted.again])
    for suite in flaky:
        print(describe(suite.name, suite.failure, wanted.configuration).replace("--- ", "--- flaky: ", 1), file=sys.stderr)
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
