"""Each place of the core that keeps an exception, and where the exception goes: errors.txt says it for each declaration of a
std::exception_ptr. What waits for a receiver lies in a tasks::untaken_error instead (docs/protocols/dropped_errors.md), which reports
what no code takes; so a new declaration fails here until somebody has looked where it goes.

Usage: errors.py check | write      `write` adds what is missing, with the reason `?`, which `check` refuses
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("errors.txt")
LAYERS = ("task", "streams", "sync", "jobs", "actor", "kit", "parallel", "runtime", "io", "protocol", "context")
DECLARED = re.compile(r"^\s+(?:mutable |static |const )*std::exception_ptr (\w+)(?:\{\}| = nullptr)?;", re.M)
REASONS = {
    "thrown": "is thrown again by the same function, to the code that waits",
    "taken": "is given to a receiver or reported as a failure by the same function",
    "shown": "is a copy for the user's code, which has it beside the one that is thrown",
    "retried": "belongs to a try that is repeated; a counter has it",
    "shared": "is thrown to each party that waits, and its counter has it",
    "owner": "is the mechanism itself",
}


def found():
    made = set()
    for top in ("include/troupe", "src"):
        for layer in LAYERS:
            for file in sorted((ROOT / top / layer).rglob("*.[ch]pp")):
                if not file.name.endswith((".test.cpp", ".model.cpp")):
                    made |= {f"{file.relative_to(ROOT)} {name}" for name in DECLARED.findall(file.read_text())}
    return made


def listed():
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))


def main():
    there, table = found(), listed()
    if sys.argv[1:] == ["write"]:
        head = "".join(f"# {reason}: {words}\n" for reason, words in REASONS.items())
        TABLE.write_text(head + "".join(f"{one} {table.get(one, '?')}\n" for one in sorted(there)))
        return 0
    if sys.argv[1:] != ["check"]:
        print(__doc__)
        return 2
    wrong = [f"{one}: say in {TABLE.name} where this exception goes, or keep it in a tasks::untaken_error"
             for one in sorted(there - set(table))]
    wrong += [f"{TABLE.name}: {one} is not there" for one in sorted(set(table) - there)]
    wrong += [f"{TABLE.name}: {one}: '{why}' is no reason; there are {', '.join(REASONS)}"
              for one, why in table.items() if why not in REASONS]
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
