"""Puts faults of the past back, one at a time, and sees whether the tests still catch each; plants wrong transitions of
states, and sees whether the checked build stops at each.

Usage: run.py [NAME...]                 the faults of these names, or all of faults.ini
       run.py --transitions [NAME...]   the wrong transitions whose names begin so, or all of transitions.ini
       run.py --check                   without building: can each be put in, and do its tests exist?

NAME.patch undoes one mend. faults.ini says which targets of the library it concerns, which files of tests are compiled
with them, and which of their suites catch it. This happens in a copy of the tree, build/faults/tree, whose build is kept:
each fault compiles only the files that it changes, and the tests of faults.ini. The suites must pass before the patch is
applied; with it, each of them must fail. A wrong transition is a line of transitions.ini instead of a patch, and the
suites must end by the invariant that the line names. Status 0: all are caught; 1: one is not, or its patch does not apply or compile.
"""

import argparse
import configparser
import dataclasses
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Where a fault hangs a suite, this is when it counts as failed.
SUITE_SECONDS_MAX = 120
COMPILE_SECONDS_MAX = 3000
OUTPUT_LINES_MAX = 30
SKIPPED = 77


class Problem(Exception):
    """Why a fault could not be judged, or was not caught: a sentence."""


@dataclasses.dataclass
class Fault:
    name: str
    undoes: str
    room: str
    targets: list
    sources: list
    suites: list
    cases: str = "*"  # of the suites; for a suite that takes long
    repeat: int = 1  # for a fault that shows only at times

    def put_into(self, tree, dry=False):
        """Raises a Problem if it cannot be put into the tree."""
        tree.patch(self, *(["--dry-run"] if dry else []))

    def is_caught_by(self, said):
        return True

    def missing(self):
        return [] if (HERE / f"{self.name}.patch").is_file() else [f"{self.name}: there is no {self.name}.patch"]


@dataclasses.dataclass
class Transition:
    """A wrong transition: the text `origin` of the file becomes `planted`, and the invariant of that label stops it."""
    name: str
    file: str
    origin: str
    planted: str
    stops: str
    targets: list
    sources: list
    suites: list
    cases: str = "*"
    repeat: int = 1

    @property
    def undoes(self):
        return f"invariant {self.stops}"

    def put_into(self, tree, dry=False):
        path = tree.folder / self.file
        text = path.read_text() if path.is_file() else ""
        if text.count(self.origin) != 1:
            raise Problem(f"{self.name}: {self.file} does not have this text exactly once: {self.origin}; write the text of today "
                          "into tests/faults/transitions.ini")
        if not dry:
            path.write_text(text.replace(self.origin, self.planted))

    def is_caught_by(self, said):
        return f"invariant {self.stops} does not hold" in said

    def missing(self):
        return []


LISTS = ("targets", "sources", "suites")


def read_sections(path):
    parser = configparser.ConfigParser()
    parser.read_string(path.read_text())
    for name in parser.sections():
        words = {key: value for key, value in parser[name].items() if key not in parser.defaults()}
        yield name, {key: value.split() if key in LISTS else value for key, value in words.items()}


def read_faults():
    faults = {}
    for name, words in read_sections(HERE / "faults.ini"):
        words.pop("caught_by", None)
        words["repeat"] = int(words.get("repeat", "1"))
        faults[name] = Fault(name, **words)
    return faults


def read_transitions():
    transitions = {}
    for name, words in read_sections(HERE / "transitions.ini"):
        words["origin"], words["planted"] = words.pop("from"), words.pop("to")
        transitions[name] = Transition(name, **words)
    return transitions


class Tree:
    """A copy of the sources with a build of its own, without optimisation."""

    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build" / "faults"
        # The compiler cache then knows what another copy has compiled.
        self.environment = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", **os.environ, "LC_ALL": "C"}
        # The headers that ctest's own build has precompiled are of other flags.
        self.environment.pop("TROUPE_PRECOMPILED_IN", None)
        self.launcher = ["ccache"] if shutil.which("ccache") else []
        self.linker = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []

    def run(self, what, *words, seconds_max=COMPILE_SECONDS_MAX):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds_max)
        if done.returncode != 0:
            raise Problem(f"{what}:\n{tail(done.stdout)}")
        return done.stdout

    def refresh(self):
        """Copies what differs, so that what has not changed is not compiled again."""
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, text=True, check=True).stdout.split("\0")
        names = {name for name in listed if name and (ROOT / name).is_file()}
        for name in names:
            target = self.folder / name
            if target.is_file() and target.read_bytes() == (ROOT / name).read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
        for target in self.folder.rglob("*"):
            name = target.relative_to(self.folder)
            if target.is_file() and name.parts[0] not in ("build", "objects") and str(name) not in names:
                target.unlink()

    def configure(self):
        self.run("the copy cannot be configured", "cmake", "-S", ".", "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                 "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1", f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(self.launcher)}",
                 "-DCMAKE_CXX_COMPILER=g++", "-DTROUPE_TESTS=OFF", "-DTROUPE_TOOLS=OFF", "-DTROUPE_EXAMPLES=OFF")

    def patch(self, fault, *options):
        patch = HERE / f"{fault.name}.patch"
        done = subprocess.run(["patch", "--strip=1", "--forward", "--fuzz=3", "--no-backup-if-mismatch", "--reject-file=-",
                               *options, f"--input={patch}"], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Problem(f"tests/faults/{patch.name} does not apply any more: put the fault into the source by hand, as its "
                          f"commit says ({fault.undoes}), and write `git diff` over the patch; if the code is gone, delete both "
                          f"the patch and its section of faults.ini, and say why in the commit:\n{tail(done.stdout)}")

    def program(self, fault):
        """Builds the program of the fault's tests as the copy is now; gives its path."""
        self.run(f"{fault.name} does not build", "ninja", "-C", self.build, *fault.targets)
        objects = []
        for source in fault.sources:
            target = self.folder / "objects" / (source.replace("/", "_") + ".o")
            target.parent.mkdir(exist_ok=True)
            self.run(f"{fault.name}: {source} does not compile", *self.launcher, "g++", f"@{self.build}/use/compile.rsp", "-O0", "-g1",
                     f"-I{self.folder}/src", f"-I{self.folder}/tests", "-w", "-c", self.folder / source, "-o", target)
            objects.append(target)
        # Only archives of this fault's targets: the others may have been built with another fault.
        wanted = {f"lib{target}.a" for target in fault.targets}
        link = (self.build / "use/link.rsp").read_text().splitlines()
        link = [line for line in link if not line.strip('"').endswith(".a") or pathlib.Path(line.strip('"')).name in wanted]
        response = self.folder / "objects" / "link.rsp"
        response.write_text("\n".join(link) + "\n")
        program = self.folder / "objects" / fault.name
        self.run(f"{fault.name}: its tests cannot be linked", "g++", *self.linker, *objects, "-lgtest_main", "-lgtest", "-lgmock",
                 f"@{response}", "-o", program)
        return program


def tail(text):
    lines = text.rstrip().splitlines()
    return "\n".join("    " + line for line in lines[-OUTPUT_LINES_MAX:])


def run_suite(program, fault, suite):
    """(passed, what to say of it, its output)"""
    names = f"{suite}.{fault.cases}:*/{suite}.{fault.cases}:{suite}/*.{fault.cases}"
    try:
        done = subprocess.run([program, "--gtest_brief=1", f"--gtest_filter={names}", f"--gtest_repeat={fault.repeat}",
                               *(["--gtest_break_on_failure"] if fault.repeat > 1 else [])],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=SUITE_SECONDS_MAX, env={**os.environ, "TROUPE_SOURCE_DIR": str(ROOT)})
    except subprocess.TimeoutExpired:
        return False, f"{suite} hangs", ""
    ran = sum(int(count) for count in re.findall(r"^\[ *(?:PASSED|FAILED) *\] (\d+) tests?\b", done.stdout, re.MULTILINE))
    if done.returncode == 0 and ran == 0:
        raise Problem(f"{fault.name}: {suite} ran no case; does its section name it rightly?")
    failed = dict.fromkeys(re.findall(r"^\[ *FAILED *\] ([^\s,]*[a-z][^\s,]*)", done.stdout, re.MULTILINE))
    if done.returncode == 0:
        return True, f"{suite} passes", done.stdout
    return False, f"{suite} fails: {', '.join(list(failed)[:3]) or tail(done.stdout)}", done.stdout


def judge(tree, fault):
    """Raises a Problem unless each suite passes without the fault and fails with it; gives what was said."""
    program = tree.program(fault)
    for suite in fault.suites:
        passed, said, _ = run_suite(program, fault, suite)
        if not passed:
            raise Problem(f"{fault.name}: {said} before the fault is put back")
    fault.put_into(tree)
    try:
        program = tree.program(fault)
        results = [run_suite(program, fault, suite) for suite in fault.suites]
    finally:
        tree.refresh()
    for passed, said, output in results:
        if passed or not fault.is_caught_by(output):
            raise Problem(f"{fault.name}: NOT CAUGHT: {said}, against {fault.undoes}")
    return "; ".join(fault.undoes if isinstance(fault, Transition) else said for _, said, _ in results)


def check(faults):
    problems = [f"{path.name} has no section in faults.ini" for path in HERE.glob("*.patch") if path.stem not in faults]
    for fault in faults.values():
        if missing := fault.missing():
            problems += missing
            continue
        try:
            fault.put_into(Tree(ROOT), dry=True)
        except Problem as problem:
            problems.append(str(problem))
        text = "".join((ROOT / source).read_text() for source in fault.sources if (ROOT / source).is_file())
        problems += [f"{fault.name}: there is no {source}" for source in fault.sources if not (ROOT / source).is_file()]
        problems += [f"{fault.name}: no test in {' '.join(fault.sources)} is of the suite {suite}" for suite in fault.suites
                     if not re.search(rf"^TEST(?:_F|_P)?\({suite},", text, re.MULTILINE)]
    return problems


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--transitions", action="store_true")
    wanted = parser.parse_args()
    for program in "patch", "git":
        if shutil.which(program) is None:
            print(f"faults: skipped: needs {program}")
            return SKIPPED
    faults = read_transitions() if wanted.transitions else read_faults()
    if wanted.check:
        faults = read_faults() | read_transitions()
        problems = check(faults)
        print("\n".join(problems) or f"faults: {len(faults)} can be put back")
        return 1 if problems else 0
    if wanted.transitions:
        wanted.names = [name for name in faults if name.startswith(tuple(wanted.names or [""]))]
    unknown = [name for name in wanted.names if name not in faults]
    if unknown:
        print(f"faults: faults.ini has no {', '.join(unknown)}", file=sys.stderr)
        return 2

    folder = ROOT / "build" / "faults"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tree = Tree(folder / "tree")
        missed = 0
        tree.refresh()
        tree.configure()
        for name in wanted.names or faults:
            began = time.monotonic()
            try:
                print(f"{name}: caught: {judge(tree, faults[name])} ({time.monotonic() - began:.0f} s)", flush=True)
            except Problem as problem:
                missed += 1
                print(problem, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
