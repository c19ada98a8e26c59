#!/usr/bin/env python3
"""The names of a shared library that programs may be linked with. Usage: abi_names.py LIBRARY

A library shows all names of the namespace troupe. Programs can name those alone that the public headers
declare: so each word of such a name is a word of a header, each class of it is defined there, and names of
src/ may come and go. Names of templates, which each program has as well, are left out.
"""
import functools
import pathlib
import re
import subprocess
import sys

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "include"
WORD = re.compile(r"[A-Za-z_]\w*")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum)\s+([^;{}()]*)\{")


@functools.cache
def words_of_headers():
    return frozenset(word for header in HEADERS.rglob("*.hpp") for word in WORD.findall(header.read_text()))


@functools.cache
def scopes_of_headers():
    """The words in the heads of namespaces and of classes that have a body: programs name no member of the others."""
    found = set()
    for header in HEADERS.rglob("*.hpp"):
        text = re.sub(r"//[^\n]*|alignas\([^)]*\)", "", header.read_text())
        for head in SCOPE.findall(text):
            found.update(WORD.findall(head))
    return frozenset(found)


def is_declared(path):
    return all(word in words_of_headers() for word in path) and all(word in scopes_of_headers() for word in path[:-1])


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
    return [name for name, text in zip(names, plain) if is_declared(path_of(text))]


if __name__ == "__main__":
    print("\n".join(shown(sys.argv[1])))
