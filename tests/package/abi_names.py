#!/usr/bin/env python3
"""The names of a shared library that programs may be linked with. Usage: abi_names.py LIBRARY

A library shows all names of the namespace troupe. Programs can name those alone that the public headers
declare: so each word of such a name is a word of a header, and names of src/ may come and go. Names of
templates, which each program has as well, are left out.
"""
import functools
import pathlib
import re
import subprocess
import sys

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "include"
WORD = re.compile(r"[A-Za-z_]\w*")


@functools.cache
def words_of_headers():
    return frozenset(word for header in HEADERS.rglob("*.hpp") for word in WORD.findall(header.read_text()))


def path_of(demangled):
    """The qualified name, without what is in parentheses and angle brackets."""
    name = demangled.removeprefix("vtable for ").removeprefix("typeinfo for ").removeprefix("typeinfo name for ")
    name = name.replace("(anonymous namespace)", "anonymous_namespace")
    plain, depth = "", 0
    for letter in name.split("(")[0]:
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and letter not in "<>":
            plain += letter
    return WORD.findall(plain)


def shown(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    names = sorted({line.split()[-1] for line in lines if line.split()[-2] in "TBDR"})
    if not names:
        return []
    plain = subprocess.run(["c++filt"], input="\n".join(names), check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    known = words_of_headers()
    return [name for name, text in zip(names, plain) if all(word in known for word in path_of(text))]


if __name__ == "__main__":
    print("\n".join(shown(sys.argv[1])))
