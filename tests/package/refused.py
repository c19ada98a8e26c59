"""Each public header refuses what troupe cannot be compiled with, in one #error that says what to do.

usage: refused.py COMPILER...
The headers of reflect stand below all others, and do without that.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

INCLUDE = Path(os.environ["TROUPE_SOURCE_DIR"]) / "include"
LIBRARY = ["-DTROUPE_CHECKED=0", "-DTROUPE_PLAIN_BLOCKS=0", "-DTROUPE_SANITIZED_THREAD=0"]
# flags, and what the error says
REFUSED = [
    (["-std=c++17"], "-std=c++20"),
    (["-std=c++20", "-fno-exceptions"], "-fno-exceptions"),
    (["-std=c++23", "-fsanitize=thread"], "TROUPE_SANITIZE=thread"),
]


def errors_of(compiler, flags, header):
    program = f"#include <{header.relative_to(INCLUDE)}>\n"
    command = [compiler, *flags, *LIBRARY, f"-I{INCLUDE}", "-isystem", "/usr/include/postgresql",
               "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if "error:" in line]


def faults_of(compiler, flags, says, header):
    found = errors_of(compiler, flags, header)
    # the second ends the compilation
    if len(found) == 2 and "troupe: " in found[0] and says in found[0] and "fatal" in found[1]:
        return []
    return [f"{compiler} {' '.join(flags)}: {header.relative_to(INCLUDE)}: {found[:3]}"]


def main():
    headers = [one for one in sorted(INCLUDE.rglob("*.hpp")) if "reflect" not in one.parts]
    assert len(headers) > 100
    work = []
    for compiler in sys.argv[1:]:
        # the first line of all headers is the same: one way to refuse is tried on all of them
        for number, (flags, says) in enumerate(REFUSED):
            chosen = headers if number == 0 else [INCLUDE / "troupe/troupe.hpp"]
            work += [(compiler, flags, says, header) for header in chosen]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [line for found in pool.map(lambda one: faults_of(*one), work) for line in found]
    print("\n".join(faults) or f"{len(work)} compilations are refused")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
