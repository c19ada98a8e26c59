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
NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|alignas\([^)]*\)|\[\[.*?\]\]"
                     r"|^[ \t]*#(?!\s*(?:if|el|endif))(?:[^\n\\]|\\.)*"  # what is left of directives tells the branches
                     r'|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"'
                     r"|'(?:[^'\\\n]|\\.)'", re.S | re.M)
# The head of a namespace or class, up to its brace; behind `:` and `final` it names other classes.
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum(?:\s+(?:class|struct))?)\s+([A-Za-z_][\w:\s]*?)\s*(?:<[^;{}()]*>)?\s*(?:final\s*)?"
                   r"(?:(?<!:):(?!:)[^;{}]*)?$")


@functools.cache
def words_of_headers():
    return frozenset(word for header in HEADERS.rglob("*.hpp") for word in WORD.findall(header.read_text()))


def scopes_of(text):
    """The full names of the namespaces and of the classes with a body, as tuples of words."""
    found, around, head, before = {()}, [()], "", []
    for piece in re.split(r"([{};]|^[ \t]*#[^\n]*)", NO_CODE.sub(" ", text), flags=re.M):
        directive = piece.strip().removeprefix("#").strip() if piece.strip().startswith("#") else ""
        if directive.startswith("if"):
            before.append(around.copy())
        elif directive.startswith("el"):
            around = before[-1].copy()  # each branch begins in the same scope
        elif directive.startswith("endif"):
            before.pop()
        elif piece == "{":
            opened = SCOPE.search(head)
            around.append(around[-1] + tuple(WORD.findall(opened[1])) if opened else around[-1])
            found.update(around[-1][:length] for length in range(len(around[-1]) + 1))
        elif piece == "}":
            around.pop()
        if not directive:
            head = "" if piece in ("{", "}", ";") else head + piece
    return found


@functools.cache
def scopes_of_headers():
    return frozenset().union(*(scopes_of(header.read_text()) for header in HEADERS.rglob("*.hpp")))


def is_declared(path):
    return all(word in words_of_headers() for word in path) and tuple(path[:-1]) in scopes_of_headers()


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
