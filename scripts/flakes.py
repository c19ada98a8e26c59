"""Which of the suites that failed are run again, and which of them are flaky: those fail no run.

Usage: flakes.py JUNIT.xml...

Prints the names of the suites to run again, one a line: those that failed, if they are few, and if
what each said is no proof of a fault. One that then passes each time, with nothing else at work, is
flaky. docs/decisions/flaky_suites.md has the reasons.
"""

import re
import sys

import junit

# More have a cause in common.
SUITES_MAX = 2
RUNS_AGAIN = 2
# A sanitizer's report, a broken invariant or assertion, and an end by a signal, as ctest names it: none
# of them comes from a machine that is slow.
PROOFS = re.compile(r"\wSanitizer: |: runtime error: |Assertion .*failed|^troupe: invariant |"
                    r"^(SEGFAULT|ILLEGAL|BUS_ERROR|NUMERICAL|Subprocess aborted|Exception|OTHER_FAULT)", re.MULTILINE)


def to_run_again(suites):
    failed = [suite for suite in suites if suite.failure is not None]
    if len(failed) > SUITES_MAX or any(PROOFS.search(suite.failure) for suite in failed):
        return []
    return failed


def settle(suites, again):
    """(the suites with what counts, the flaky ones); AGAIN has the suites of each further run by their names."""
    settled, flaky = [], []
    may_be = {suite.name for suite in to_run_again(suites)} if len(again) >= RUNS_AGAIN else set()
    for suite in suites:
        runs = [one[suite.name] for one in again if suite.name in one]
        if suite.name in may_be and len(runs) == len(again) and all(run.failure is None for run in runs):
            flaky.append(suite)
            suite = runs[-1]
        settled.append(suite)
    return settled, flaky


def main():
    suites = [suite for path in sys.argv[1:] for suite in junit.read(path)]
    for suite in to_run_again(suites):
        print(suite.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
