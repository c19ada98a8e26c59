"""Reads what ctest wrote for one configuration and shows the failures.

Usage: test_report.py JUNIT.xml CONFIGURATION

Failures go to standard error, each with the end of its output and the command that repeats it.
Standard output is one line: PASSED FAILED SKIPPED.
"""

import re
import sys
import xml.etree.ElementTree

OUTPUT_LINES_MAX = 60


def read(path):
    """(passed, failed, skipped) where failed is a list of (test name, output)."""
    passed, failed, skipped = 0, [], 0
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        reason = case.find("skipped")
        if case.get("status") == "run":
            passed += 1
        elif case.get("status") == "disabled" or (
                reason is not None and reason.get("message", "").startswith("SKIP_")):
            skipped += 1
        else:
            # Whatever else ctest may say (fail, not run for want of a program) is no success.
            failure = case.find("failure")
            said = [e.get("message", "") for e in (reason, failure) if e is not None]
            output = "\n".join([case.findtext("system-out", "").rstrip(), *said])
            failed.append((case.get("name"), output))
    return passed, failed, skipped


def describe(name, output, configuration):
    lines = output.rstrip().splitlines()
    shown = lines[-OUTPUT_LINES_MAX:]
    if len(lines) > len(shown):
        shown.insert(0, f"... {len(lines) - len(shown)} lines above")
    # The comment that CMake appends to the names of parameterised tests is part of the name.
    pattern = "^" + re.sub(r"[^\w/.: -]", ".", name) + "$"
    repeat = f"./test --in {configuration} --only '{pattern}'"
    return "\n".join([f"--- {name}", *("    " + line for line in shown), f"    repeat: {repeat}"])


def main():
    passed, failed, skipped = read(sys.argv[1])
    for name, output in failed:
        print(describe(name, output, sys.argv[2]), file=sys.stderr)
    print(passed, len(failed), skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
