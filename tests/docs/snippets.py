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
INCLUDE = r"^[ \t]*#[ \t]*include.*$"


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


def batch(examples):
    """The text of one file that compiles several snippets, each in a namespace of its own. Those that run do so each by its number among
    them, which is the program's argument."""
    parts = [_parts(one) for one in examples]
    spaces = [f"namespace example_{number} {{\n{body}{_main(one, body)}}}\n" for number, (one, (_, body)) in enumerate(zip(examples, parts))]
    text = _head([line for includes, _ in parts for line in includes]) + "".join(spaces)
    if not any(one.run for one in examples):
        return text
    calls = [f"  if (number == {number}) return example_{number}::main({'1, argv' if 'int main(int argc' in body else ''});\n"
             for number, (one, (_, body)) in enumerate(zip(examples, parts)) if one.run]
    return text + f"int main(int, char** argv) {{\n  const int number = std::stoi(argv[1]);\n{''.join(calls)}  return 1;\n}}\n"


def can_be_in_a_batch(snippet):
    """Not what specialises something of ours or defines a macro; nor a program whose main does not end as all do."""
    if re.search(r"template <>|#define|^ *namespace (std|troupe)\b", snippet.code, re.MULTILINE):
        return False
    return not snippet.run or snippet.kind != "program" or _whole_main(snippet.code) is not None


def _main(snippet, body):
    if not snippet.run or snippet.kind == "program":
        return ""
    return f"int main() {{\n{_call_of_fragment(body)}return 0;\n}}\n"


def _call_of_fragment(body):
    return "troupe::runtime rt_; rt_.spawn(fragment()); rt_.run();\n" if _awaits(body) else "fragment();\n"


def _whole_main(code):
    """A main in a namespace must say what it returns. None when its end is not found."""
    made, count = re.subn(r"^(int main\([^)]*\) \{\n(?:.*\n)*?)\}$", r"\1return 0; }", code, flags=re.MULTILINE)
    return made if count == 1 else None


def program(snippet):
    """The text of a program that compiles, and runs, the snippet."""
    if snippet.kind == "program" and not snippet.header:
        return _located(snippet, snippet.code)
    includes, body = _parts(snippet)
    main = {"program": "",
            "declarations": "int main() {}\n",
            "fragment": f"int main() {{ {_call_of_fragment(body)}}}\n"}[snippet.kind]
    return _head(includes) + body + main


def _parts(snippet):
    """What the snippet includes, and the rest of it; a fragment as a function."""
    includes = [f"#include <{snippet.header}>"] if snippet.header else []
    includes += re.findall(INCLUDE, snippet.code, re.MULTILINE)
    # A hoisted #include leaves its line empty, so that the messages' line numbers stay right.
    code = re.sub(INCLUDE, "", snippet.code, flags=re.MULTILINE)
    code = _located(snippet, (_whole_main(code) or code) if snippet.kind == "program" else code) + '#line 1 "wrapper"\n'
    if snippet.kind != "fragment":
        return includes, code
    if _awaits(code):
        # The final co_return makes a coroutine of a fragment whose only co_await is in a lambda.
        return includes, f"static troupe::task<void> fragment() {{\n{code}co_return;\n}}\n"
    return includes, f"static void fragment() {{\n{code}}}\n"


def _located(snippet, code):
    file, line = snippet.where.rsplit(":", 1)
    return f'#line {line} "{file}"\n{code}'


def _head(includes):
    top = "\n".join(dict.fromkeys(includes + ["#include <troupe/troupe.hpp>"]))
    return f"{top}\n{PRELUDE}using namespace std::chrono_literals;\n"


def _awaits(code):
    return re.search(r"\bco_(await|return|yield)\b", code)


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
