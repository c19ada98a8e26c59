"""A compiler launcher for builds of the library within tests: it copies the object that this build has already made from the
same sources by the same command, and else compiles.

Usage: built.py TABLE [LAUNCHER...] COMPILER ARGUMENT...   (`prepare` writes the folder TABLE and returns the launcher)

Such a test still runs its own configuration. That decides which units are compiled, with which flags, and which objects are
archived and linked. A unit with another flag, definition or included file than in this build has another command, and is
compiled. So is one that includes a file which a build generates, and one of which a source is younger than its object.
"""

import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

PRECOMPILED = "/cmake_pch.hxx"
SECONDS_MAX = 60


def key_of(words):
    """The command but for where it writes and where the build lies: the build writes the unit that has the sources of a folder
    together, and the list of the headers that are precompiled. Both count by their names and their texts."""
    words = iter(words)
    parts = []
    for word in words:
        if word in ("-o", "-MF", "-MT"):
            next(words)
        elif word.endswith(PRECOMPILED) or word.endswith(".cxx") and "/Unity/" in word:
            text = pathlib.Path(word).read_bytes()
            parts += [*word.split("/")[-2:], hashlib.sha256(text).hexdigest()]
        elif word not in ("-MD", "-c"):
            parts.append(word)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_uses(build):
    """The files that each object of the build includes, as ninja knows them: by object."""
    said = subprocess.run(["ninja", "-C", build, "-t", "deps"], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=SECONDS_MAX).stdout
    uses = {}
    for block in said.split("\n\n"):
        lines = block.splitlines()
        head = [line for line in lines if "(VALID)" in line]
        if head:
            uses[head[0].split(": #deps")[0]] = [
                os.path.normpath(os.path.join(build, line.strip())) for line in lines if line.startswith(" ")]
    return uses


def prepare(folder):
    """Writes down which objects of the library this build (TROUPE_BINARY_DIR) has; returns the words of the launcher. A file
    of the table is named for a command, and names the compiler's object and then what that was made of."""
    build = os.environ["TROUPE_BINARY_DIR"]
    if not all((pathlib.Path(build) / name).exists() for name in ("build.ninja", "compile_commands.json")):
        return []  # a build by other means: everything is compiled
    compiler = os.environ["TROUPE_CXX"].split()[-1]
    table = pathlib.Path(folder) / "built"
    table.mkdir()
    uses = read_uses(build)
    for command in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        words = shlex.split(command["command"])
        made, unit = words[words.index("-o") + 1], words[-1]
        used = uses.get(made, [])
        generated = [file for file in used if file.startswith(build) and file != unit and PRECOMPILED not in file]
        if made.startswith("CMakeFiles/") and used and not generated and compiler in words:
            key = key_of(words[words.index(compiler):])
            (table / key).write_text("\n".join([os.path.join(build, made), *used]))
    (table / "compiler").write_text(compiler)
    return [sys.executable, __file__, str(table)]


def is_current(made, used):
    try:
        date = os.stat(made).st_mtime_ns
        return all(os.stat(file).st_mtime_ns <= date for file in used)
    except OSError:
        return False


def copy(table, words):
    """Whether the command's object is one of this build; then it lies where the command wants it, with its rule."""
    compiler = (table / "compiler").read_text()
    if compiler not in words or "-c" not in words:
        return False
    words = words[words.index(compiler):]
    entry = table / key_of(words)
    made, *used = entry.read_text().splitlines() if entry.exists() else [""]
    if not is_current(made, used):
        return False
    output = words[words.index("-o") + 1]
    shutil.copyfile(made, output)
    if "-MF" in words:
        files = " ".join(file.replace(" ", "\\ ") for file in used)
        pathlib.Path(words[words.index("-MF") + 1]).write_text(f"{output}: {files}\n")
    return True


def main():
    words = sys.argv[2:]
    if not copy(pathlib.Path(sys.argv[1]), words):
        os.execvp(words[0], words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
