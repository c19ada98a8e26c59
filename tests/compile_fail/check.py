"""Checks that a program is refused by the compiler, and with the right words.

Usage: check.py FILE.cpp

The file says what the error must contain, one text a line, all of which must appear:
    // expect: the method takes other arguments
The compiler must say that in one error, and no other. With -DCONTROL the same file must compile: that
shows that it is refused for the reason given and not for a missing include. So a file looks like this:
    #ifdef CONTROL
      right();
    #else
      wrong();
    #endif
Where the language lets nothing take the wrong text, the compiler adds errors of its own. A file names them, one text a line:
    // also: no matching
The words expected must come in the first error then, and every further error must contain one of these texts.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import toolchain  # noqa: E402


def check(source):
    """Returns what is wrong with the test `source`, or an empty list."""
    text = source.read_text()
    expected = re.findall(r"^\s*// expect: *(.*\S)", text, re.MULTILINE)
    if not expected:
        return ["the file has no line `// expect: text`"]
    if "CONTROL" not in text:
        return ["the file has no part for CONTROL"]

    compiled, said = toolchain.compile_for_errors(source, "-DCONTROL")
    if not compiled:
        return [f"with -DCONTROL it does not compile either:\n{said}"]
    compiled, said = toolchain.compile_for_errors(source, "-Wall", "-Werror")
    if compiled:
        return ["it compiles, and must not"]
    # Line ends inside a quoted type depend on the compiler; blanks are compared as one.
    plain = " ".join(said.split())
    problems = [f"the error does not contain: {t}" for t in expected if " ".join(t.split()) not in plain]
    errors = re.findall(r"\berror: (.*)", said)
    also = re.findall(r"^\s*// also: *(.*\S)", text, re.MULTILINE)
    if also and errors:
        problems += [f"the first error does not contain: {t}" for t in expected if t not in errors[0]]
        problems += [f"there is a further error: {e}" for e in errors[1:] if not any(t in e for t in also)]
    elif len(errors) != 1:
        problems.append(f"there are {len(errors)} errors, where one says all")
    return problems + ([f"the compiler said:\n{said}"] if problems else [])


def main():
    problems = check(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(problems) or "refused, with the expected words")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
