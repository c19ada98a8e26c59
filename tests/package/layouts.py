#!/usr/bin/env python3
"""The sizes, alignments, bases and virtual tables of the classes in the public headers. Usage: layouts.py

Programs have them compiled in: a shared library that changes one breaks programs that were linked before, although it
shows the same names. abi/layouts.txt keeps them, as abi_names.py keeps the names; ABI_WRITE=1 writes it anew. They are
compared in C++20 and in C++23, whose programs link with the same library. Templates are left out, and so are the
headers that need Asio. members.py looks at the offsets of members.
"""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
WORK = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "package_test/layouts"
COMPILER = os.environ["TROUPE_CXX"].split()[-1]
KEPT = pathlib.Path(__file__).resolve().parent / "abi" / "layouts.txt"
LANGUAGES = ("c++20", "c++23")
# As the packages are compiled.
SETTINGS = ("-DTROUPE_CHECKED=0", "-DTROUPE_PLAIN_BLOCKS=0", "-DTROUPE_SANITIZED_THREAD=0")
NEEDS_ASIO = re.compile(r"/asio(/(executor|library|token))?\.hpp$")
STEP_S = 600
# Neither templates nor what has no name, or lies in a function.
PLAIN_NAME = re.compile(r"troupe(::\w+)+")


def is_by_gcc():
    version = subprocess.run([COMPILER, "--version"], stdout=subprocess.PIPE, text=True, timeout=STEP_S).stdout
    return "Free Software Foundation" in version


def all_headers():
    """A source that includes them all."""
    headers = sorted((SOURCE / "include").rglob("*.hpp"))
    together = WORK / f"{pathlib.Path(sys.argv[0]).stem}.cpp"
    together.write_text("".join(f"#include <{header.relative_to(SOURCE / 'include')}>\n" for header in headers
                                if not NEEDS_ASIO.search(str(header))))
    return together


def dumped(language):
    """What the compiler says of all classes."""
    together, text = all_headers(), WORK / f"{language}.txt"
    done = subprocess.run([COMPILER, f"-std={language}", f"-I{SOURCE}/include", *SETTINGS, "-fsyntax-only",
                           f"-fdump-lang-class={text}", together], stderr=subprocess.PIPE, text=True, timeout=STEP_S)
    if done.returncode != 0:
        sys.exit(f"layouts: the headers are refused in {language}:\n{done.stderr[-2000:]}")
    return text.read_text()


def layouts(language):
    """For each class a line with its size and alignment, and the entries of its virtual table."""
    found = set()
    for block in dumped(language).split("\n\n"):
        lines = block.strip().splitlines()
        name = lines[0].partition(" ")[2] if lines else ""
        if lines and lines[0].startswith("Class ") and PLAIN_NAME.fullmatch(name):
            size = re.search(r"size=(\d+) align=(\d+)", lines[1])
            bases = [line.split(" (0x")[0].strip() + " at " + line.split(") ", 1)[1].split()[0]
                     for line in lines[4:] if " (0x" in line and "primary-for" not in line]
            found.add(f"{name} size {size[1]} align {size[2]}" + "".join(f", {base}" for base in bases))
        table = re.fullmatch(r"Vtable for (.*)", lines[0]) if lines else None
        if table and PLAIN_NAME.fullmatch(table[1]):
            entries = [re.sub(r"^\d+ +|\(int \(\*\)\(\.\.\.\)\)|[()& ]", "", line) for line in lines[2:]]
            found.add(f"{table[1]} virtual {' '.join(entries)}")
    return found


def main():
    if not is_by_gcc():
        print("package: skipped: needs a build with g++")
        return 77
    WORK.mkdir(parents=True, exist_ok=True)
    first, *others = (layouts(language) for language in LANGUAGES)
    for other in others:
        if first != other:
            sys.exit("layouts: programs in C++20 and C++23 differ: " + "\n".join(sorted(first ^ other)[:20]))
    if "ABI_WRITE" in os.environ:
        KEPT.write_text("\n".join(sorted(first)) + "\n")
    changed = sorted(set(KEPT.read_text().splitlines()) - first)
    if changed:
        sys.exit("layouts: programs that were compiled before have another layout (docs/stability.md; ABI_WRITE=1 keeps the "
                 "new one):\n" + "\n".join(changed[:20]))
    print(f"layouts: {len(first)} lines as they were")
    return 0


if __name__ == "__main__":
    sys.exit(main())
