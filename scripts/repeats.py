"""How often in a row each suite has passed beside a load: tests/repeats.txt.

Usage: repeats.py check             is each suite listed that may depend on time, and has a new one passed often enough?
       repeats.py left              the names of those that have not passed often enough, one a line
       repeats.py record JUNIT...   counts on by these runs of release; one that failed begins again

The file has a line `SUITE N` for each suite of tests/ledger/release.txt that may depend on time: those that
start processes, sockets or threads, and some more. N stops at 20. `# below 20: M` above them is how many are
below; M only falls, and therefore a new suite passes that often before it lands.
"""

import pathlib
import re
import sys

import junit
import ledger

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests/repeats.txt"
ENOUGH = 20
# Rooms whose suites do not depend on time: they read sources, compile, or run in one thread; so do models and lints.
REPEATABLE = {"tidy", "header", "ledger", "compile_fail", "docs", "package", "commands", "layout", "verdicts", "faults",
              "mutations", "reflect", "json", "cron", "fuzz", "fuzz_nats", "fuzz_cluster", "determinism"}
# These measure time, and run alone (tests/README.md): a load would only make them slower.
MEASURE = {"conformance/p10_idle", "conformance/p10_watch", "conformance/p11_fairness", "conformance/p11_long_handlers",
           "conformance/spent_times", "http/http_accounts", "http/http_slow", "io/io_fairness", "io/p10_io", "io/p11_io"}
HEAD = ("# How often in a row each suite has passed beside a load: scripts/repeats.py, written by "
        "`./test --repeat N --beside-load [NAME]`.\n")
BOUND = re.compile(rf"^# below {ENOUGH}: (\d+)$", re.MULTILINE)


def depends_on_time(suite):
    room = suite.split("/")[0]
    return suite not in MEASURE and room not in REPEATABLE and not suite.startswith(("model_", "tools/lint_"))


def read(text):
    """({suite: number}, the bound)."""
    bound = BOUND.search(text)
    return {name: int(number) for name, number in re.findall(r"^([^#\s]\S*) (\d+)$", text, re.MULTILINE)}, int(bound[1]) if bound else 0


def below(numbers):
    return [suite for suite, number in numbers.items() if number < ENOUGH]


def text_of(numbers, bound):
    lines = [f"{suite} {numbers[suite]}" for suite in sorted(numbers)]
    return HEAD + f"# below {ENOUGH}: {bound}\n" + "\n".join(lines) + "\n"


def suites_listed():
    entries = ledger.read_file(ROOT / "tests/ledger/release.txt", ledger.parse) or {}
    return {suite for suite, entry in entries.items() if entry.expected() > 0 and depends_on_time(suite)}


def problems(numbers, bound, suites):
    """The faults of the file, a sentence each."""
    said = [f"{suite} is not in tests/repeats.txt: run `./test --repeat {ENOUGH} --beside-load '^{suite}$'`, and commit that file"
            for suite in sorted(suites - set(numbers))]
    said += [f"{suite} is no suite of tests/ledger/release.txt any more: delete its line in tests/repeats.txt"
             for suite in sorted(set(numbers) - suites)]
    few = below(numbers)
    if len(few) > bound:
        said.append(f"{len(few)} suites have not passed {ENOUGH} times in a row beside a load, {bound} are allowed: run "
                    f"`./test --repeat {ENOUGH} --beside-load NAME` for those that are new or failed, of {', '.join(few[-9:])}")
    if len(few) < bound:
        said.append(f"{len(few)} suites are below {ENOUGH}: lower the number in the second line of tests/repeats.txt")
    return said


def counted(numbers, runs, listed):
    """The numbers after these runs, each a list of suites; of suites that are LISTED in the ledger."""
    result = dict(numbers)
    for suites in runs:
        for suite in suites:
            if suite.name not in listed or suite.passed + suite.failed == 0:
                continue
            result[suite.name] = 0 if suite.failure is not None else min(result.get(suite.name, 0) + 1, ENOUGH)
    return result


def main():
    words = sys.argv[1:]
    numbers, bound = read(FILE.read_text() if FILE.exists() else "")
    if words == ["check"]:
        said = problems(numbers, bound, suites_listed())
        print("\n".join(said or ["repeats"]))
        return 1 if said else 0
    if words == ["left"]:
        sys.stdout.writelines(f"{suite}\n" for suite in below(numbers))
        return 0
    if len(words) > 1 and words[0] == "record":
        numbers = counted(numbers, [junit.read(path) for path in words[1:]], suites_listed())
        FILE.write_text(text_of(numbers, min(bound, len(below(numbers)))))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
