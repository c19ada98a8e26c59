"""Whether the instructions of one operation of each kind are still those of benches/instructions.txt.

Usage: check.py PROGRAM COMPILER. The program is compiled from benches/instructions.cpp.
"""

import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "benches" / "driver"))

import instructions  # noqa: E402

SKIPPED = 77
COUNTS_MOST = 3


def count_near(program, operation, before):
    """The count; of three, the nearest to the kept one, if they differ: a worker that loses its processor does more."""
    counts = []
    while len(counts) < COUNTS_MOST and not any(abs(counted - before) <= operation.most * before for counted in counts):
        counts.append(instructions.count(program, operation))
    return min(counts, key=lambda counted: abs(counted - before))


def main():
    program, compiler = sys.argv[1:]
    kept_compiler, kept = instructions.read_kept()
    if shutil.which("valgrind") is None:
        print("instructions: skipped: needs valgrind")
        return SKIPPED
    if instructions.compiler_of(compiler) != kept_compiler:
        print("instructions: skipped: needs the compiler of the kept counts")
        return SKIPPED
    far = []
    print(instructions.HEADER)
    for operation in instructions.OPERATIONS:
        before, aim = kept[operation.name]
        counted = count_near(program, operation, before)
        print(instructions.table_line(operation.name, counted, before, aim), flush=True)
        if abs(counted - before) > operation.most * before:
            far.append(operation.name)
    if far:
        print(f"instructions: too far from the kept counts: {', '.join(far)}. Where that is meant, run "
              "./bench --instructions --keep and commit benches/instructions.txt.")
    return 1 if far else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except instructions.Failed as failure:
        sys.exit(f"instructions: {failure}")
