"""No default argument is an aggregate with a destructor: g++ 12 destroys such a temporary twice if the call is a part of what a coroutine awaits. Usage:

default_arguments.py COMPILER FLAGS…    an overload without the parameter takes the place of such an argument
"""

import pathlib
import re
import subprocess
import sys

import _headers

# `const options& how = {}`, `filter keeps = filter()`; not of a template's parameters.
DEFAULT = re.compile(r"[(,]\s*(?:const\s+)?((?:[a-z_]\w*::)*[a-z_]\w*)\s*(?:const)?\s*&{0,2}\s*[a-z_]*\s*=\s*(?:\{|[a-z_:]+\s*[({])")
SPACE = re.compile(r"namespace\s+([\w:]+)\s*$")
# Parameters of templates are capitalized, so these are types. Those without a destructor, and a class's own alias of one.
PLAIN = {"auto", "bool", "int", "unsigned", "double", "float", "time_point"}


def names_in(header):
    """The pairs of a namespace and the name of a type that is looked up there."""
    text = _headers.plain(header.read_text())
    for found in DEFAULT.finditer(text):
        before = text[: found.start()]
        scopes, begin = [], 0
        for at, letter in enumerate(before):
            if letter == "{":
                scopes.append(SPACE.search(before[begin:at]) or _headers.scope_of(before[begin:at]))
            elif letter == "}" and scopes:
                scopes.pop()
            if letter in "{};":
                begin = at + 1
        if found.group(1).split("::")[-1] not in PLAIN and None not in scopes:
            yield "::".join(space.group(1) for space in scopes if isinstance(space, re.Match)), found.group(1)


def unit(headers):
    lines = ["#include <type_traits>"]
    checks = set()
    for header in headers:
        for scope, name in names_in(header):
            lines.append(f"#include <{header.relative_to(_headers.INCLUDE)}>")
            checks.add((scope, name))
    lines += ["template <class T> concept is_safe = !std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>;"]
    for scope, name in sorted(checks):
        lines.append(f"namespace {scope} {{")
        lines.append(f'static_assert(::is_safe<{name}>, "a default argument {name} in {scope}: write an overload without it");')
        lines.append("}")
    return "\n".join(lines) + "\n", len(checks)


def main():
    headers = sorted((_headers.INCLUDE / "troupe").rglob("*.hpp"))
    text, count = unit(headers)
    made = subprocess.run([*sys.argv[1:], "-fsyntax-only", "-x", "c++", "-"], input=text, text=True, capture_output=True, check=False)
    print("\n".join(line for line in made.stderr.splitlines() if "error" in line))
    print(f"{count} default arguments")
    sys.exit(1 if made.returncode or count < 20 else 0)


main()
