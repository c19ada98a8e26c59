"""The suites that a change of the sources can reach, for `./test --changed`.

Usage: changed.py FOLDER NAMES [REV]

FOLDER is a configured build. NAMES gets the names of the suites, one a line; standard output says why.
The change is that of the working tree since the last commit, with files that git does not know yet; with
REV it is everything since this branch left REV.

Where a changed header is included by other objects, those are not compiled: ./test does that.

A library is linked into every program, therefore the build graph alone would choose all suites. The rule:

  a source of a test, or a header of tests   the suites in the objects whose dependencies name it
  a source or header of a layer              the unit suites of the layer; the suites of the folder of tests
                                             that is nearest by name (of `src/http/h2/` that is `tests/http/h2/`,
                                             of `src/sync/` `tests/conformance/sync/`); suites and models that
                                             include its header themselves
  a public header                            its own suite header/..., docs/headers and docs/site
  a script                                   the suites whose command names it, or those of its folder
  an example, a chapter, the README          its own suite; of a document also docs/site
  what builds or tests everything            all suites
  any file                                   the rules of tests/tidy and tests/ledger
"""

import functools
import pathlib
import re
import subprocess
import sys

import compiled_together
import suites

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
TESTS = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+)|^INSTANTIATE_TEST_SUITE_P\([^,]*,\s*(\w+)", re.MULTILINE)
DEPS = re.compile(r"^(\S+): #deps \d+, .*\((?:VALID|STALE)\)\n((?:    .*\n)*)", re.MULTILINE)
EDGE = re.compile(r"^build (\S+\.o): \S+ (\S+)", re.MULTILINE)
CPP = (".cpp", ".hpp", ".h", ".c")
EVERYTHING = re.compile(r"(CMakeLists\.txt|CMakePresets\.json|cmake/.*|tests/CMakeLists\.txt|tests/precompiled\.cpp)$")


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout


def changed_files(rev):
    """Paths from the root, of files that were removed as well."""
    base = git("merge-base", "HEAD", rev).strip() if rev else "HEAD"
    named = (git("diff", "--relative", "--name-only", "--no-renames", "-z", base) +
             git("ls-files", "-z", "--others", "--exclude-standard"))
    return sorted(set(named.split("\0")) - {""})


def read(path):
    """The text of a file, by its path from the root; none if it was removed."""
    return (ROOT / path).read_text(errors="replace") if (ROOT / path).is_file() else ""


def files(folder, pattern):
    """The files of a folder, by their paths from the root."""
    return [str(path.relative_to(ROOT)) for path in (ROOT / folder).glob(pattern)]


def includes(text):
    return INCLUDE.findall(text)


@functools.cache
def included_files(path):
    bases = ((ROOT / path).parent, ROOT / "include", ROOT / "src", ROOT / "tests")
    return [str((base / name).relative_to(ROOT)) for name in includes(read(path)) for base in bases
            if (base / name).is_file()]


class Build:
    """The build graph, as far as it is known: an object that was never compiled has only its source."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.suites = suites.read(self.folder)
        self.sources = {}
        for built, source in EDGE.findall((self.folder / "build.ninja").read_text()):
            self.sources[built] = self.relative(source)
        shown = subprocess.run(["ninja", "-C", self.folder, "-t", "deps"], capture_output=True, text=True).stdout
        self.needs = {built: {self.relative(path) for path in lines.split()} for built, lines in DEPS.findall(shown)}

    def relative(self, path):
        """A path from the root, or as it is when it lies elsewhere."""
        whole = pathlib.Path(path) if path.startswith("/") else self.folder / path
        try:
            return str(pathlib.Path(*whole.resolve().parts).relative_to(ROOT))
        except ValueError:
            return str(whole)

    def parts(self, built):
        """The sources of an object: several, where they are compiled together."""
        return [self.relative(path) for path in compiled_together.sources_of(ROOT / self.sources[built])]

    def reached(self, path):
        """The objects that this file is compiled into."""
        for built, source in self.sources.items():
            if path == source or path in self.needs.get(built, ()):
                yield built
            elif built not in self.needs and path in self.closure(built):
                yield built

    def closure(self, built):
        """What the sources of an object include, by their text."""
        found, left = set(), list(self.parts(built))
        while left:
            path = left.pop()
            if path not in found:
                found.add(path)
                left += included_files(path)
        return found

    def suites_of(self, sources, program=None):
        """The suites whose tests stand in these sources, of one program alone if that is known."""
        stems = {pathlib.Path(path).stem.split(".")[0] for path in sources}
        tests = {a or b for path in sources for a, b in TESTS.findall(read(path))}
        for suite in self.suites:
            name = suite.name.partition("/")[2]
            runs = program is None or (suite.command and pathlib.Path(suite.command[0]).name == program)
            if runs and (name in tests or (suite.name.startswith("model_") and suite.name[6:] in stems)):
                yield suite.name

    def suites_that_run(self, program):
        return [suite.name for suite in self.suites
                if any(pathlib.Path(word).name == program for word in suite.command)]


def folder_near(path):
    """The folders of tests that are named like the folder of a source of the library, nearest first."""
    parts = [part for part in pathlib.Path(path).parts[1:-1] if part != "troupe"]
    while parts:
        for base in ("tests", "tests/conformance"):
            folder = pathlib.Path(base, *parts)
            if (ROOT / folder).is_dir():
                return folder
        parts.pop()
    return None


class Choice:
    def __init__(self, build):
        self.build = build
        self.why = {}

    def add(self, names, why):
        for name in names:
            self.why.setdefault(name, why)

    def add_matching(self, pattern, why):
        self.add([suite.name for suite in self.build.suites if re.search(pattern, suite.name)], why)

    def add_tests(self, paths, why):
        self.add(self.build.suites_of(paths), why)

    def library(self, path):
        layer = [part for part in pathlib.Path(path).parts[1:] if part != "troupe"][0]
        self.add_tests(files(f"src/{layer}", "**/*.test.cpp"), f"unit suites of {layer}")
        near = folder_near(path)
        if near is not None:
            self.add_tests(files(near, "*.cpp"), f"{near}/")
        stem = pathlib.Path(path).stem
        header = re.compile(rf"(?:^|/){re.escape(layer)}/(?:\S*/)?{re.escape(stem)}\.hpp?$")
        tests = [*files("tests", "**/*.cpp"), *files("src", "**/*.test.cpp"), *files("src", "**/*.model.cpp")]
        self.add_tests([file for file in tests if any(map(header.search, includes(read(file))))],
                       f"include the header of {stem}")
        if path.startswith("include/"):
            self.add_matching(f"^header/{re.escape(path[len('include/'):])}", path)
            self.add_matching("^docs/(headers|site)$", path)

    def test_source(self, path):
        for built in self.build.reached(path):
            program = pathlib.Path(built).parts[pathlib.Path(built).parts.index("CMakeFiles") + 1][:-len(".dir")]
            parts = self.build.parts(built)
            # What is compiled together with it is another test; a header is in all of them.
            sources = [path] if path in parts else parts
            found = list(self.build.suites_of(sources, program))
            # A program without tests is what a script runs.
            self.add(found or self.build.suites_that_run(program), path)

    def script(self, path):
        """A file of tests that is no C++, or what is compiled by a script."""
        whole = str(ROOT / path)
        named = [suite.name for suite in self.build.suites if whole in suite.command]
        folder = pathlib.Path(path).parts[1]
        self.add(named, path)
        if not named:
            self.add([suite.name for suite in self.build.suites
                      if any(word.startswith(f"{ROOT}/tests/{folder}/") for word in suite.command)], f"tests/{folder}/")

    def example(self, path):
        stem = pathlib.Path(path).stem
        self.add_matching(f"^example/{re.escape(stem)}$", path)
        for script in (ROOT / "tests/examples").glob("*.*"):
            if re.search(rf"\b{re.escape(stem)}\b", read(script)):
                self.add_matching(f"^example/{re.escape(script.stem)}$", path)

    def file(self, path):
        parts = pathlib.Path(path).parts
        if EVERYTHING.match(path):
            self.add_matching("", f"{path} reaches everything")
        elif parts[0] in ("src", "include"):
            if re.search(r"\.(test|model)\.cpp$", path):
                self.test_source(path)
            else:
                self.library(path)
        elif parts[0] == "tests" and len(parts) > 2:
            if pathlib.Path(path).suffix in CPP and parts[1] not in ("compile_fail", "package"):
                self.test_source(path)
            if not any(why == path for why in self.why.values()):
                self.script(path)
        elif parts[0] == "examples":
            self.example(path)
        elif parts[0] == "tools":
            self.add_matching("^tools/", path)
        elif path == "README.md" or path.startswith("docs/guide/"):
            self.add_matching("^docs/(guide|site)$", path)
        elif path.endswith(".md") or path.startswith("docs/"):
            self.add_matching("^docs/site$", path)
        elif path == "site" or path.startswith("scripts/site/"):
            self.add_matching("^docs/site", path)
        elif parts[0] in ("test", "run", "scripts"):
            self.add_matching("^commands/", path)


def main():
    folder, names = sys.argv[1:3]
    build = Build(folder)
    choice = Choice(build)
    changed = changed_files(sys.argv[3] if len(sys.argv) > 3 else None)
    for path in changed:
        choice.file(path)
    if changed:
        choice.add_matching("^(tidy|ledger)/", "rules that hold for any file")
    pathlib.Path(names).write_text("".join(f"{name}\n" for name in sorted(choice.why)))
    reasons = {}
    for name, why in choice.why.items():
        reasons[why] = reasons.get(why, 0) + 1
    print(f"{len(changed)} files are changed; of {len(build.suites)} suites they reach {len(choice.why)}")
    print("".join(f"  {count:4}  {why}\n" for why, count in sorted(reasons.items())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
