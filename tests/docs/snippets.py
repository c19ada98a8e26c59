"""Finds the C++ in the documents and makes programs of it. snippets_test.py tests this file.

In a markdown file, a block fenced with ```cpp is one of:
  ```cpp               a whole program: it has `int main`. It is compiled and run.
  ```cpp fragment      statements. They become the body of a function (a coroutine, run by a runtime,
                       if they use co_await), which is compiled and run.
  ```cpp declarations  what stands outside functions. It is compiled.
A further word `norun` compiles a block without running it: a server that would never end.
A block fenced with ```text output that follows a program is what that program must print.
Other fences (```text, ```sh) are left alone.

In a public header, the lines under a comment line `// Example:` that are indented by five blanks or
more after the slashes are a fragment, and those under `// Example (declarations):` are declarations.
They are compiled, with their own header included. An example with an `int main` is a whole program.

Fragments and declarations may use what is in PRELUDE; `#include` lines in them move to the top.
"""

import dataclasses
import re

PRELUDE = """\
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
"""
KINDS = ("program", "fragment", "declarations")


@dataclasses.dataclass
class Snippet:
    where: str          # file:line, for the compiler's messages too
    kind: str           # one of KINDS
    code: str
    run: bool
    header: str = ""    # the header that it explains
    output: str | None = None


class Malformed(Exception):
    """A block that does not follow the convention above."""


def from_markdown(name, text):
    snippets, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        fence = re.fullmatch(r"(\s*)```(\w+)?(.*)", lines[i])
        if not fence:
            i += 1
            continue
        indent, language, words = fence.group(1), fence.group(2), fence.group(3).split()
        first = i + 1
        i = first
        while i < len(lines) and lines[i].strip() != "```":
            i += 1
        if i == len(lines):
            raise Malformed(f"{name}:{first}: the block is never closed")
        body = "\n".join(line.removeprefix(indent) for line in lines[first:i]) + "\n"
        i += 1
        if language == "cpp":
            snippets.append(_block(f"{name}:{first + 1}", words, body))
        elif language == "text" and words == ["output"]:
            if not snippets or not snippets[-1].run:
                raise Malformed(f"{name}:{first}: this output follows no program that is run")
            snippets[-1].output = body
    return snippets


def from_header(name, text):
    """The examples of a header; `name` is its path as one includes it."""
    snippets, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        head = re.fullmatch(r"\s*//+ Example( \(declarations\))?:", lines[i])
        i += 1
        if not head:
            continue
        first, body = i + 1, []
        while i < len(lines) and (line := re.fullmatch(r"\s*//+(?:     (.*)|\s*)", lines[i])):
            body.append(line.group(1) or "")
            i += 1
        if not any(body):
            raise Malformed(f"include/{name}:{first}: the example is empty; indent it by five blanks")
        kind = "declarations" if head.group(1) else "program" if any("int main(" in line for line in body) else "fragment"
        snippets.append(Snippet(f"include/{name}:{first}", kind, "\n".join(body) + "\n", False, name))
    return snippets


def program(snippet):
    """The text of a program that compiles, and runs, the snippet."""
    file, line = snippet.where.rsplit(":", 1)
    if snippet.kind == "program" and not snippet.header:
        return f'#line {line} "{file}"\n{snippet.code}'
    # A hoisted #include leaves its line empty, so that the messages' line numbers stay right.
    includes = re.findall(r"^[ \t]*#[ \t]*include.*$", snippet.code, re.MULTILINE)
    code = re.sub(r"^[ \t]*#[ \t]*include.*$", "", snippet.code, flags=re.MULTILINE)
    headers = [f"#include <{snippet.header}>"] if snippet.header else []
    top = "\n".join(headers + ["#include <troupe/troupe.hpp>"] + includes)
    marked = f'#line {line} "{file}"\n{code}#line 1 "wrapper"\n'
    head = f"{top}\n{PRELUDE}using namespace std::chrono_literals;\n"
    if snippet.kind == "program":
        return head + marked
    if snippet.kind == "declarations":
        return f"{head}{marked}int main() {{}}\n"
    if re.search(r"\bco_(await|return|yield)\b", code):
        # The final co_return makes a coroutine of a fragment whose only co_await is in a lambda.
        return (f"{head}static troupe::task<void> fragment() {{\n{marked}co_return;\n}}\n"
                "int main() { troupe::runtime rt_; rt_.spawn(fragment()); rt_.run(); }\n")
    return f"{head}static void fragment() {{\n{marked}}}\nint main() {{ fragment(); }}\n"


def _block(where, words, body):
    kind = "program" if re.search(r"\bint main\s*\(", body) else "none"
    for word in words:
        if word in KINDS[1:]:
            kind = word
        elif word != "norun":
            raise Malformed(f"{where}: `{word}` is no word of the convention")
    if kind == "none":
        raise Malformed(f"{where}: no `int main`; mark it `fragment` or `declarations`")
    return Snippet(where, kind, body, kind != "declarations" and "norun" not in words)
