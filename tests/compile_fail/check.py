"""Checks that a program is refused by the compiler, and with the right words.

Usage: check.py FILE.cpp       the refusal
       check.py controls       that the same files compile with -DCONTROL, many at a time

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

import concurrent.futures
import hashlib
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import toolchain  # noqa: E402

BATCH = 12
COMPILERS_AT_ONCE = 2


def check(source):
    """Returns what is wrong with the test `source`, or an empty list."""
    text = source.read_text()
    expected = re.findall(r"^\s*// expect: *(.*\S)", text, re.MULTILINE)
    if not expected:
        return ["the file has no line `// expect: text`"]
    if "CONTROL" not in text:
        return ["the file has no part for CONTROL"]

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


def check_control(source):
    """Returns what is wrong with the file's part for CONTROL, or None."""
    compiled, said = toolchain.compile_for_errors(source, "-DCONTROL")
    return None if compiled else f"{source.name}: with -DCONTROL it does not compile either:\n{said}"


def batch(sources):
    """One file of several controls, each in a namespace of its own."""
    headers, bodies = {}, []
    for source in sources:
        text = source.read_text()
        for include in re.findall(r"^#include .*$", text, re.MULTILINE):
            quoted = re.match(r'#include "(.*)"', include)
            if quoted and (source.parent / quoted[1]).exists():
                include = f'#include "{(source.parent / quoted[1]).resolve()}"'
            headers[include] = None
        body = re.sub(r"^#include .*$", "", text, flags=re.MULTILINE)
        bodies.append(f'namespace control_{len(bodies)} {{\n#line 1 "{source}"\n{body}\n}}\n')
    return "\n".join([*headers, *bodies])


def check_controls(sources):
    """Returns what is wrong with the controls; those of a batch that does not compile are tried alone."""
    text = batch(sources)
    together = toolchain.BINARY_DIR / "controls" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
    together.parent.mkdir(parents=True, exist_ok=True)
    together.write_text(text)
    # A main in a namespace is a function like others, which returns something.
    if toolchain.compile_for_errors(together, "-DCONTROL", "-Wno-return-type")[0]:
        return []
    return [problem for problem in map(check_control, sources) if problem]


def controls():
    sources = sorted(pathlib.Path(__file__).resolve().parent.rglob("*.cpp"))
    batches = [sources[i : i + BATCH] for i in range(0, len(sources), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(COMPILERS_AT_ONCE) as pool:
        return [problem for some in pool.map(check_controls, batches) for problem in some]


def main():
    if sys.argv[1] == "controls":
        problems, good = controls(), "all compile without the error"
    else:
        problems, good = check(pathlib.Path(sys.argv[1]).resolve()), "refused, with the expected words"
    print("\n".join(problems) or good)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
