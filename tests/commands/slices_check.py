"""Every deep test is in a slice of tests/slices.ini, and the slices take turns as they should.

It reads the list of suites of this build, the sources that ask for TROUPE_DEEP, and what ./test leaves out
of its daily configurations.
"""

import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "scripts"))

import slices  # noqa: E402
import suites  # noqa: E402

TESTS = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+)", re.MULTILINE)
ASKS_FOR_DEEP = re.compile(r"""(?<!environ\.pop\(")TROUPE_DEEP\b|chosen_seeds\(""")
# What does not depend on the compiler, or is a program of its own.
ONCE = re.compile(r"^(tidy|ledger|determinism|faults|commands|package|cluster_faults|fuzz|docs/selftest$|debugger/names$|mutations/|model_.*\.mutation\.)")
# The suites of a script that asks for TROUPE_DEEP, by its folder. Support is used by others.
OF_SCRIPTS = {"tests/examples": "example/{stem}", "tests/debugger": "debugger/{stem}", "tests/docs": "docs/guide",
              "tests/models": "model_parker", "tests/simulation": "determinism/conformance", "tests/package": "package/arm64_core"}


class Slices:
    def __init__(self):
        self.all = slices.read(SOURCE / "tests/slices.ini")

    def hold(self, name, *configurations, deep=False):
        """Is the suite of this name in a slice of one of these configurations, with more to do if it is deep?"""
        return any(re.search(one["suites"], name) for one in self.all.values()
                   if one.get("in") in configurations and (not deep or one.get("environment")))


def prefixes_left_out(configuration):
    """What ./test does without in a daily configuration, as prefixes of suites."""
    found = re.search(rf'\[{configuration}\]="([^"]*)"', (SOURCE / "test").read_text())
    return [word.replace("troupe::", "") for word in found.group(1).split(";")]


def lost_suites(held, listed):
    for suite in listed:
        if suite.is_deep and not held.hold(suite.name, "release", deep=True):
            yield f"{suite.name} is labelled deep, and no slice of release runs it"
        if suite.is_serial and not suite.is_deep and not held.hold(suite.name, "asan", "tsan"):
            yield f"{suite.name} is deep under a sanitizer, and no slice of asan or tsan runs it"
        if ONCE.match(suite.name) or suite.is_deep:
            continue
        for configuration in ("clang", "dev"):
            if configuration == "clang" and suite.name.startswith("model_"):
                continue  # what a model proves does not depend on the compiler
            if not held.hold(suite.name, configuration):
                yield f"no slice of {configuration} runs {suite.name}"
        if {"conformance", "simulation"} & set(suite.labels) and not held.hold(suite.name, "sim"):
            yield f"no slice of sim runs {suite.name}"


def lost_prefixes(held):
    for configuration in ("asan", "tsan"):
        for prefix in prefixes_left_out(configuration):
            if not held.hold(f"{prefix}/suite", configuration):
                yield f"./test leaves {prefix} out of {configuration}, and no slice of {configuration} runs it"


def lost_sources(held, names):
    for path in sorted([*SOURCE.glob("src/**/*.test.cpp"), *SOURCE.glob("tests/**/*.[chp]*")]):
        text = path.read_text(errors="replace")
        where = path.relative_to(SOURCE)
        by_folder = OF_SCRIPTS.get(str(where.parent))
        helps = path.suffix == ".hpp" or where.parts[1] in ("support", "commands", "ledger")
        if not ASKS_FOR_DEEP.search(text) or (helps and not by_folder):
            continue
        wanted = [by_folder.format(stem=path.stem)] if by_folder else [
            name for suite in TESTS.findall(text) for name in names if name.split("/")[-1] == suite]
        if not wanted:
            yield f"{where} asks for TROUPE_DEEP, and no suite is known for it: add it to OF_SCRIPTS"
        for name in sorted(set(wanted)):
            if not held.hold(name, "release", deep=True):
                yield f"{where} does more under TROUPE_DEEP, and no slice of release runs {name}"


def wrong_slices(held, names):
    turns = slices.turns(held.all)
    if len(turns) > slices.TURNS_MAX:
        yield f"{len(turns)} turns are more than {slices.TURNS_MAX}"
    for name in held.all.sections():
        if not any(re.search(held.all[name]["suites"], suite) for suite in names):
            yield f"slice {name} matches no suite"
    # Landings that follow each other take all turns, and go round the slices of each.
    first = [slices.choose(held.all, number).split(".")[0] for number in range(7, 7 + len(turns))]
    if sorted(first) != sorted(turns):
        yield f"landings take the turns {first}"
    longest = max(map(len, turns.values()))
    if {slices.choose(held.all, number) for number in range(longest * len(turns))} != set(held.all.sections()):
        yield "a slice never has its turn"
    hour = 3600
    if slices.landings([0, 60, hour, 3 * hour, 3 * hour + 5, 5 * hour]) != 2:
        yield "landings are counted wrongly"


def lost_files(listed, folder):
    """Of the files that an installation copies from the build, some that its suites do not build before."""
    made = {}
    for line in re.findall(r"^build (.*?):", (folder / "build.ninja").read_text(), re.MULTILINE):
        files = [word for word in line.split() if word != "|"]
        made.update(dict.fromkeys(files, files[0]))
    built = suites.targets([suite for suite in listed if suite.name == "package/cmake"], folder)
    copied = set(re.findall(rf'"{re.escape(str(folder))}/([^"]+)"', (folder / "cmake_install.cmake").read_text()))
    if not copied & set(made):
        yield "cmake_install.cmake copies nothing that is built"
    for name in sorted(copied & set(made)):
        if made[name] not in built:
            yield f"package/cmake installs {name}, and scripts/suites.py does not have it built"


def check_record(folder):
    """A pass is counted on, and a failure begins again."""
    file = folder / "slices.ini"
    file.write_text("[a]\nin = release\npassed = 4\n\n[a.b]\nin = dev\npassed = 7\n")
    counted = [slices.record("a.b", passed, file) for passed in (True, True, False, True)]
    if counted != [8, 9, 0, 1] or slices.read(file)["a"]["passed"] != "4":
        yield f"passes are counted as {counted}: {file.read_text()}"


def main():
    held = Slices()
    listed = suites.read(os.environ["TROUPE_BINARY_DIR"])
    names = [suite.name for suite in listed]
    folder = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "slices_check"
    folder.mkdir(exist_ok=True)
    problems = [*lost_suites(held, listed), *lost_prefixes(held), *lost_sources(held, names),
                *wrong_slices(held, names), *lost_files(listed, pathlib.Path(os.environ["TROUPE_BINARY_DIR"])), *check_record(folder)]
    print("\n".join(problems) or f"{len(held.all.sections())} slices hold all deep tests of {len(names)} suites")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
