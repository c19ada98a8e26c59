"""`troupe explore` finds a mistake in each of three examples within a minute.

Usage: mutations.py check                 whether each patch applies to its example
       mutations.py find TOOL EXAMPLE     searches in one of them

EXAMPLE_MISTAKE.patch puts a mistake that shows in few schedules into a copy of the example. EXAMPLE_clients.cpp includes
that copy, and is a program that talks to it and checks what it gets. The search must find the mistake with the
patch, and reduce it to a few late turns; the file must repeat it each time; without the patch it must find nothing.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests" / "support"))

import toolchain  # noqa: E402

FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "mutations"
FIND_SECONDS_MAX = 60
HOLDS_MAX = 3
REPLAYS = 100
SCHEDULES_WITHOUT = 500
SECONDS_MAX = 300
toolchain.SECONDS_MAX = 200  # a web server and its client in one file


def fail(text):
    print(f"mutations: {text}")
    sys.exit(1)


def example_of(patch):
    return SOURCE / "examples" / f"{patch.stem.split('_')[0]}.cpp"


def patched(patch, target):
    done = subprocess.run(["patch", "--silent", "--force", "--output", str(target), str(example_of(patch)), str(patch)],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        fail(f"{patch.name} does not apply to {example_of(patch).name}:\n{done.stdout}{done.stderr}")


def check():
    FOLDER.mkdir(parents=True, exist_ok=True)
    patches = sorted(HERE.glob("*.patch"))
    for patch in patches:
        patched(patch, FOLDER / f"{patch.stem}.check")
        if not (HERE / f"{example_of(patch).stem}_clients.cpp").exists():
            fail(f"{patch.name} has no clients")
    if len(patches) < 3:
        fail(f"there are {len(patches)} patches")
    print(f"{len(patches)} patches apply")


def build(example, text):
    """The program with that text of the example. The folder's name makes the compilation another one if the text is."""
    folder = FOLDER / hashlib.sha256(text.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{example}.cpp").write_text(text)
    clients, made, program = HERE / f"{example}_clients.cpp", folder / f"{example}.o", folder / example
    good, said = toolchain.compile_object(clients, made, f"-I{folder}")
    if good:
        good, said = toolchain.link_program([made], program)
    if not good:
        fail(f"{example} cannot be built:\n{said}")
    return program


def run(*words):
    return subprocess.run([str(word) for word in words], cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def late_turns(said):
    """How many the failure was reduced to; None if it was not."""
    for line in said.splitlines():
        words = line.split()
        if words[:2] == ["reduced", "to"]:
            return int(words[2])
    return None


def find(tool, patch):
    example = example_of(patch).stem
    copy = FOLDER / f"{patch.stem}.cpp"
    patched(patch, copy)
    program = build(example, copy.read_text())
    file = FOLDER / f"{patch.stem}.schedule"
    began = time.monotonic()
    done = run(tool, "explore", "--seconds", FIND_SECONDS_MAX, "-o", file, program)
    seconds = time.monotonic() - began
    holds = late_turns(done.stdout)
    if done.returncode != 1 or "expect: the condition is false" not in done.stdout:
        fail(f"{patch.stem} is not found:\n{done.stdout}{done.stderr}")
    if "schedule 1 fails" in done.stdout:
        fail(f"{patch.stem} fails in the plain schedule:\n{done.stdout}")
    if holds is None or holds > HOLDS_MAX:
        fail(f"{patch.stem} is not reduced to {HOLDS_MAX} late turns:\n{done.stdout}")
    for _ in range(REPLAYS):
        again = run(tool, "replay", file, "--", program)
        if again.returncode == 0 or "not met" in again.stderr:
            fail(f"{patch.stem} does not repeat: {again.returncode}\n{again.stdout}{again.stderr}")
    print(f"{patch.stem}: {done.stdout.splitlines()[0]}; {holds} late turns; {seconds:.1f} s")


def find_none(tool, example):
    program = build(example, (SOURCE / "examples" / f"{example}.cpp").read_text())
    done = run(tool, "explore", "--schedules", SCHEDULES_WITHOUT, "--seconds", FIND_SECONDS_MAX, program)
    if done.returncode != 0 or "no failure in" not in done.stdout:
        fail(f"{example} fails without a patch:\n{done.stdout}{done.stderr}")


def main():
    if sys.argv[1:] == ["check"]:
        check()
        return
    tool, example = sys.argv[2:4]
    FOLDER.mkdir(parents=True, exist_ok=True)
    patches = sorted(HERE.glob(f"{example}_*.patch"))
    if not patches:
        fail(f"there is no patch of {example}")
    for patch in patches:
        find(tool, patch)
    find_none(tool, example)


main()
