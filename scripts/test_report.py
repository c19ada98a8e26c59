"""Reads what ctest wrote for one configuration and shows the failures.

Usage: test_report.py JUNIT.xml CONFIGURATION

What ctest runs is one test, or a GoogleTest program with one suite of them, whose own counts are taken then.
Failures go to standard error, each with the end of its output and the command that repeats it.
Standard output is one line: PASSED FAILED SKIPPED.
"""

import re
import sys
import xml.etree.ElementTree

OUTPUT_LINES_MAX = 60


def count(output, kind):
    """How many tests a GoogleTest program says were KIND, or None when the output is not of such a program."""
    found = re.search(rf"^\[ *{kind} *\] (\d+) tests?\b", output, re.MULTILINE)
    return int(found[1]) if found else None


def failures_in(output):
    """How many tests a GoogleTest program names as failed; one, if none, for it failed all the same."""
    return len(set(re.findall(r"^\[ *FAILED *\] ([^\s,]*[^\s\d,][^\s,]*)", output, re.MULTILINE))) or 1


def read(path):
    """(passed, failed, skipped, failures) where failures is a list of (name, output), one for each that ctest ran."""
    passed, failed, skipped, failures = 0, 0, 0, []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        reason = case.find("skipped")
        output = case.findtext("system-out", "")
        inside = count(output, "PASSED")
        skipped += count(output, "SKIPPED") or 0
        if case.get("status") == "run":
            passed += 1 if inside is None else inside
        elif case.get("status") == "disabled" or (
                reason is not None and reason.get("message", "").startswith("SKIP_")):
            skipped += 1
        else:
            # Whatever else ctest may say (fail, not run for want of a program) is no success.
            passed += inside or 0
            failed += failures_in(output)
            failure = case.find("failure")
            said = [e.get("message", "") for e in (reason, failure) if e is not None]
            failures.append((case.get("name"), "\n".join([output.rstrip(), *said])))
    return passed, failed, skipped, failures


def describe(name, output, configuration):
    lines = output.rstrip().splitlines()
    shown = lines[-OUTPUT_LINES_MAX:]
    if len(lines) > len(shown):
        shown.insert(0, f"... {len(lines) - len(shown)} lines above")
    pattern = "^" + re.sub(r"[^\w/.: -]", ".", name) + "$"
    repeat = f"./test --in {configuration} --only '{pattern}'"
    return "\n".join([f"--- {name}", *("    " + line for line in shown), f"    repeat: {repeat}"])


def main():
    passed, failed, skipped, failures = read(sys.argv[1])
    for name, output in failures:
        print(describe(name, output, sys.argv[2]), file=sys.stderr)
    print(passed, failed, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
