"""The suites of a build folder, as ctest lists them.

Usage: suites.py select FOLDER PRESET FILE [--deep] [--only REGEX] [--serial | --beside]
                 [--names NAMES] [--targets OUT]

Writes to FILE the numbers of the suites to run, in the form of `ctest --tests-information FILE`,
and prints how many they are. The labels that PRESET names choose them, and REGEX. --deep adds the
deep ones; --serial takes those that measure, which run alone, and --beside all others. NAMES is a
file with one name a line, of which no other suite is taken. OUT gets the names of the targets that
the suites need, one a line, or `all`.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUBDIRS = re.compile(r'^subdirs\("(.*)"\)$', re.M)
ADD_TEST = re.compile(r"^add_test\(\[(=*)\[(.*?)\]\1\] (.*)\)$", re.MULTILINE)
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
# Suites that are scripts, by the first word of their names: those that link programs of their own, and
# those that read the sources alone.
NEEDS_LIBRARIES = {"docs", "fuzz", "package", "commands"}
NEEDS_NOTHING = {"tidy", "ledger", "header", "compile_fail", "debugger", "faults"}
LISTED = re.compile(r"^ *Test +#(\d+): ", re.MULTILINE)


@dataclasses.dataclass
class Suite:
    number: int  # among all suites of the folder, from 1
    name: str
    labels: list
    is_serial: bool
    command: list

    @property
    def is_deep(self):
        return "deep" in self.labels


def commands(folder):
    """The command of each suite. ctest itself leaves out those of programs that are not yet built."""
    found, folders = {}, [pathlib.Path(folder)]
    while folders:
        within = folders.pop()
        text = (within / "CTestTestfile.cmake").read_text()
        # By these lines, since a test may have made a build with tests of its own somewhere below.
        folders += [within / below for below in SUBDIRS.findall(text)]
        for _, name, words in ADD_TEST.findall(text):
            found[name] = [re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
                           for quoted, plain in WORD.findall(words)]
    return found


def read(folder):
    """All suites of a build folder that is configured."""
    shown = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    command_of = commands(folder)
    suites = []
    for number, test in enumerate(json.loads(shown)["tests"], 1):
        properties = {one["name"]: one["value"] for one in test["properties"]}
        suites.append(Suite(number, test["name"], properties.get("LABELS", []),
                            bool(properties.get("RUN_SERIAL")), command_of.get(test["name"], [])))
    return suites


def numbers(preset, deep, only=None):
    """The numbers of the suites that ctest would run itself, in order."""
    command = ["ctest", "--preset", preset, "--show-only", "--no-tests=ignore"]
    if deep:
        # A suite is excluded if its labels match all patterns. The preset has one pattern, and no
        # label matches this one.
        command += ["--label-exclude", "^$"]
    if only:
        command += ["--tests-regex", only]
    shown = subprocess.run(command, cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    return [int(number) for number in LISTED.findall(shown)]


def targets(suites, folder):
    """The targets that these suites need; None if that is everything."""
    folder = pathlib.Path(folder).resolve()
    outputs = set(re.findall(r"^build ([^ :]+)", (folder / "build.ninja").read_text(), re.MULTILINE))
    libraries = {name for name in outputs if name.endswith(".a") and name.startswith("lib")}
    names = set()
    for suite in suites:
        kind = suite.name.split("/")[0]
        inside = [word[len(f"{folder}/"):] for word in suite.command if word.startswith(f"{folder}/")]
        programs = {word for word in inside if word in outputs}
        if kind in NEEDS_LIBRARIES or "package" in suite.labels:
            # An installation has the tool's texts.
            names |= libraries | {name for name in outputs if name.startswith("tools/texts/")
                                  or name.startswith("tools/") and "." not in name}
        elif kind == "example" and not programs:
            names |= {name for name in outputs if re.fullmatch(r"examples/\w+", name)}
        elif not programs and kind not in NEEDS_NOTHING:
            return None
        names |= programs
    return names


def parsed(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["select"])
    for name in ("folder", "preset", "file"):
        parser.add_argument(name)
    for name in ("--deep", "--serial", "--beside"):
        parser.add_argument(name, action="store_true")
    for name in ("--only", "--names", "--targets"):
        parser.add_argument(name)
    return parser.parse_args(words)


def main():
    options = parsed(sys.argv[1:])
    by_labels = numbers(options.preset, options.deep)
    wanted = by_labels
    if options.only:
        wanted = numbers(options.preset, options.deep, options.only)
    chosen = [suite for suite in read(options.folder) if suite.number in wanted]
    if options.serial or options.beside:
        chosen = [suite for suite in chosen if suite.is_serial == options.serial]
    if options.names:
        names = set(pathlib.Path(options.names).read_text().split("\n"))
        chosen = [suite for suite in chosen if suite.name in names]
    # ctest counts those that the labels have left.
    listed = ",".join(str(by_labels.index(suite.number) + 1) for suite in chosen)
    pathlib.Path(options.file).write_text(f"0,0,0,{listed}\n")
    if options.targets:
        needed = targets(chosen, options.folder)
        text = "all\n" if needed is None else "".join(f"{name}\n" for name in sorted(needed))
        pathlib.Path(options.targets).write_text(text)
    print(len(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
