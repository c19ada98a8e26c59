"""Compiles the C++ of documents, and runs what can be run.

Usage: check.py FILE.md...    documents, by their paths from the root of the sources
       check.py headers       the examples in all public headers

snippets.py says how a block is marked.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import sys

import snippets

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import toolchain  # noqa: E402

RUN_SECONDS_MAX = 20
COMPILERS_AT_ONCE = 2
BATCH = 24  # examples of headers in one file
BATCH_RUN = 8  # those that run
# A snippet is written to be read: it may name a thing that it does not use.
LENIENT = ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter",
           "-Wno-unused-function", "-Wno-unused-value",
           # Of a lambda in a coroutine, since a snippet is not in the file that it names.
           "-Wno-subobject-linkage",
           # Of a main in the namespace of its example.
           "-Wno-return-type"]


def collect(what):
    if what != "headers":
        return snippets.from_markdown(what, (toolchain.SOURCE_DIR / what).read_text())
    found = []
    include = toolchain.SOURCE_DIR / "include"
    for header in sorted(include.rglob("*.hpp")):
        found += snippets.from_header(str(header.relative_to(include)), header.read_text())
    return found


def compile_text(text, runs):
    """Returns (it compiled, what the compiler said, the object if it is to run)."""
    # A file is named for its text, so that the compiler cache knows it again when its place changes.
    folder = toolchain.BINARY_DIR / "docs"
    source = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
    folder.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    options = [*toolchain.STRICT, *LENIENT]
    if not runs:
        return *toolchain.compile_for_errors(source, *options), None
    compiled, said = toolchain.compile_object(source, source.with_suffix(".o"), *options)
    return compiled, said, source.with_suffix(".o")


def check_some(examples):
    if len(examples) > 1:
        return check_batch(examples)
    problem = check(examples[0])
    return [problem] if problem else []


def check_batch(examples):
    """Several together; then those one by one that are not good, for they may be in each other's way, or print what namespace they lie in."""
    compiled, _, made = compile_text(snippets.batch(examples), any(one.run for one in examples))
    if not compiled:
        return [problem for problem in map(check, examples) if problem]
    if not any(one.run for one in examples):
        return []
    program = made.with_suffix("")
    linked, _ = toolchain.link_program([made], program)
    doubtful = [one for number, one in enumerate(examples) if one.run and not (linked and run(one, program, str(number)) is None)]
    return [problem for problem in map(check, doubtful) if problem]


def check(snippet):
    """Returns what is wrong with the snippet, or None."""
    compiled, said, made = compile_text(snippets.program(snippet), snippet.run)
    if not compiled:
        return f"{snippet.where}: does not compile:\n{said}"
    if not snippet.run:
        return None
    linked, said = toolchain.link_program([made], made.with_suffix(""))
    if not linked:
        return f"{snippet.where}: does not link:\n{said}"
    return run(snippet, made.with_suffix(""))


def run(snippet, program, *arguments):
    """Returns what is wrong with what the program does, or None."""
    status, out, err = toolchain.run_program(program, RUN_SECONDS_MAX, *arguments)
    if status is None:
        return f"{snippet.where}: still runs after {RUN_SECONDS_MAX} s:\n{out}{err}"
    if status != 0:
        return f"{snippet.where}: ended with status {status}:\n{out}{err}"
    if snippet.output is not None and out != snippet.output:
        return f"{snippet.where}: printed\n{out}and not\n{snippet.output}"
    return None


def batches_of(found):
    """With --deep all but examples of headers alone, as a reader has them: what others include is no help then."""
    together = [one for one in found if snippets.can_be_in_a_batch(one) and (one.header or not os.environ.get("TROUPE_DEEP"))]
    runs = [one for one in together if one.run]
    compiles = [one for one in together if not one.run]
    return ([[one] for one in found if one not in together]
            + [runs[i : i + BATCH_RUN] for i in range(0, len(runs), BATCH_RUN)]
            + [compiles[i : i + BATCH] for i in range(0, len(compiles), BATCH)])


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        found = [one for what in sys.argv[1:] for one in collect(what)]
    except snippets.Malformed as wrong:
        print(wrong)
        return 1
    with concurrent.futures.ThreadPoolExecutor(COMPILERS_AT_ONCE) as pool:
        problems = [p for some in pool.map(check_some, batches_of(found)) for p in some]
    print("\n".join(problems) or f"{len(found)} snippets are good")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
