"""Compiles the C++ of one document, and runs what can be run.

Usage: check.py FILE.md       a document, by its path from the root of the sources
       check.py headers       the examples in all public headers

snippets.py says how a block is marked.
"""

import concurrent.futures
import hashlib
import pathlib
import sys

import snippets

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import toolchain  # noqa: E402

RUN_SECONDS_MAX = 20
COMPILERS_AT_ONCE = 2
# A snippet is written to be read: it may name a thing that it does not use.
LENIENT = ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter",
           "-Wno-unused-function", "-Wno-unused-value",
           # Of a lambda in a coroutine, since a snippet is not in the file that it names.
           "-Wno-subobject-linkage"]


def collect(what):
    if what != "headers":
        return snippets.from_markdown(what, (toolchain.SOURCE_DIR / what).read_text())
    found = []
    include = toolchain.SOURCE_DIR / "include"
    for header in sorted(include.rglob("*.hpp")):
        found += snippets.from_header(str(header.relative_to(include)), header.read_text())
    return found


def check(snippet):
    """Returns what is wrong with the snippet, or None."""
    text = snippets.program(snippet)
    # A file is named for its text, so that the compiler cache knows it again when its place changes.
    folder = toolchain.BINARY_DIR / "docs"
    source = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
    folder.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    compiled, said = toolchain.compile_object(source, source.with_suffix(".o"), *toolchain.STRICT, *LENIENT)
    if not compiled:
        return f"{snippet.where}: does not compile:\n{said}"
    if not snippet.run:
        return None
    linked, said = toolchain.link_program([source.with_suffix(".o")], source.with_suffix(""))
    if not linked:
        return f"{snippet.where}: does not link:\n{said}"
    status, out, err = toolchain.run_program(source.with_suffix(""), RUN_SECONDS_MAX)
    if status is None:
        return f"{snippet.where}: still runs after {RUN_SECONDS_MAX} s:\n{out}{err}"
    if status != 0:
        return f"{snippet.where}: ended with status {status}:\n{out}{err}"
    if snippet.output is not None and out != snippet.output:
        return f"{snippet.where}: printed\n{out}and not\n{snippet.output}"
    return None


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        found = collect(sys.argv[1])
    except snippets.Malformed as wrong:
        print(wrong)
        return 1
    with concurrent.futures.ThreadPoolExecutor(COMPILERS_AT_ONCE) as pool:
        problems = [p for p in pool.map(check, found) if p]
    print("\n".join(problems) or f"{len(found)} snippets are good")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
