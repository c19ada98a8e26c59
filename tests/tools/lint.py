"""`troupe lint` finds each form of tests/tools/lint that GCC 12 miscompiles, and nothing else: not in those that are right, nor in the examples
or the C++ of the guide.

Usage: lint.py TOOL forms      the table in the folder lint: a comment above each function says what is found in it
       lint.py TOOL use        the command line, its flags and its exit status
       lint.py TOOL examples   no finding in the examples
       lint.py TOOL guide      no finding in the documents
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOOL, WHAT = sys.argv[1:3]
SOURCE_DIR = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
FORMS = pathlib.Path(__file__).resolve().parent / "lint"
SECONDS_MAX = 900  # a machine may have much else to do
INCLUDE = ["-std=c++23", f"-I{SOURCE_DIR}/include"]
sys.path.insert(0, str(SOURCE_DIR / "tests" / "docs"))
import snippets  # noqa: E402

PROBLEMS = []


def check(what, holds, seen):
    if not holds:
        PROBLEMS.append(f"{what}:\n{seen}")


def lint(*arguments, **environment):
    ended = subprocess.run([TOOL, "lint", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
                           env={**os.environ, **environment})
    return ended.returncode, ended.stdout, ended.stderr


def expected_of(path):
    """(first line, what is found or "") of each function."""
    marks = [(number, line.strip()) for number, line in enumerate(path.read_text().splitlines(), 1) if re.match(r"\s*// (wrong: |good$)", line)]
    return [(number, line.removeprefix("// wrong: ") if "wrong" in line else "") for number, line in marks]


def check_forms():
    paths = sorted(FORMS.glob("*.cpp"))
    status, out, err = lint(*paths, "--", *INCLUDE)
    check("something is found", status == 1 and not err, (status, err))
    found = {}
    for line in out.splitlines():
        place = re.match(r"(.*?):(\d+):(\d+): (.*)", line)
        found.setdefault(pathlib.Path(place[1]).name, []).append((int(place[2]), place[4]))
    count = 0
    for path in paths:
        marks = expected_of(path)
        for i, (first, words) in enumerate(marks):
            last = marks[i + 1][0] if i + 1 < len(marks) else sys.maxsize
            said = [text for line, text in found.get(path.name, []) if first <= line < last]
            good = bool(said) and all(re.search(words, text) for text in said) if words else not said
            check(f"{path.name}:{first}: expected {words or 'nothing'}", good, "\n".join(said) or "nothing is found")
            count += 1
    check("the table is whole", count > 100, count)
    print(f"{count} forms")


def check_use():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "program.cpp"
        source.write_text('#include "part.hpp"\ntask<int> go() { int n = co_await byval(A{C(ONE)}); co_return n; }\n')
        shutil.copy(FORMS / "forms.hpp", folder / "part.hpp")
        (folder / "compile_commands.json").write_text(json.dumps(
            [{"directory": name, "file": "program.cpp", "command": "g++ -std=c++23 '-DONE=1' -fmodules-ts -o x.o -c program.cpp"}]))
        status, out, _ = lint("-p", folder, source)
        check("flags of the database", status == 1 and re.match(r".*program\.cpp:2:\d+: .*`A`.*: name it first: ", out), out)
        status, out, err = lint(source, "--", "-std=c++23")
        check("a source that does not compile", status == 2 and not out and "ONE" in err, err)
        status, _, err = lint(folder / "none.cpp", "--")
        check("no such file", status == 2 and "none.cpp" in err, err)
        status, _, err = lint("-p", folder, folder / "part.hpp")
        check("not in the database", status == 2 and "compile_commands.json" in err, err)
        status, _, err = lint(source, "--", PATH="/nowhere")
        check("without clang-query its package is named", status == 2 and "clang-tools-22" in err, err)
        source.write_text("int main() {}\n")
        status, out, err = lint(source, "--")
        check("nothing is found", (status, out, err) == (0, "", ""), (status, out, err))
    status, out, _ = lint("--help")
    check("help", status == 0 and "FILES" in out and "compile_commands.json" in out, out)


def modules_of(path):
    needs = re.search(r"^// needs: (.*)$", path.read_text(), re.M)
    asked = subprocess.run(["pkg-config", "--cflags", *(needs[1].split() if needs else ["zlib"])], capture_output=True, text=True, check=False)
    return asked.stdout.split()


def lint_with_headers_read(folder, paths, headers, flags):
    """`lint` of many files, for which clang reads the headers once."""
    header = pathlib.Path(folder) / "headers.hpp"
    header.write_text("".join(f"#include <troupe/{name}.hpp>\n" for name in headers))
    compiler = shutil.which("clang-query-22") and shutil.which("clang++-22")
    read = header.with_suffix(".pch")
    if compiler and subprocess.run([compiler, *flags, "-x", "c++-header", header, "-o", read], timeout=SECONDS_MAX, check=False).returncode == 0:
        flags = [*flags, "-include-pch", str(read)]
    return lint(*paths, "--", *flags)


def check_examples():
    paths = sorted((SOURCE_DIR / "examples").rglob("*.cpp"))
    flags = [*INCLUDE, *sorted({flag for path in paths for flag in modules_of(path)})]
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = lint_with_headers_read(folder, paths, ["troupe", "http"], flags)
    check("no finding in the examples", (status, out) == (0, ""), out + err)
    print(f"{len(paths)} examples")


def check_guide():
    """Several pieces in one file, as tests/docs compiles them, so that the headers are parsed a few times only."""
    chapters = ["README.md", *(f"docs/guide/{path.name}" for path in sorted((SOURCE_DIR / "docs/guide").glob("*.md")))]
    found = [one for name in chapters for one in snippets.from_markdown(name, (SOURCE_DIR / name).read_text())]
    together = [one for one in found if snippets.can_be_in_a_batch(one)]
    texts = [snippets.program(one) for one in found if one not in together] + [snippets.batch(together[i:i + 24]) for i in range(0, len(together), 24)]
    with tempfile.TemporaryDirectory() as name:
        paths = [pathlib.Path(name) / f"piece_{number}.cpp" for number in range(len(texts))]
        for path, text in zip(paths, texts):
            path.write_text(text)
        status, out, err = lint_with_headers_read(name, paths, ["troupe"], INCLUDE)
    check("no finding in the guide", (status, out) == (0, ""), out + err)
    print(f"{len(found)} pieces")


def main():
    if not any(shutil.which(f"clang-query-{version}") for version in range(22, 40)):
        print("needs clang-query")
        return 77
    {"forms": check_forms, "use": check_use, "examples": check_examples, "guide": check_guide}[WHAT]()
    print("\n".join(PROBLEMS))
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
