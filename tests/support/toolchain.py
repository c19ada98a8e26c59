"""toolchain: compiles C++ for the test scripts, with the flags of the build that runs them.

CTest gives a script its surroundings in the environment (troupe_script_test in cmake/troupe_tests.cmake):
  TROUPE_SOURCE_DIR  the root of the sources
  TROUPE_BINARY_DIR  the build; use/compile.rsp and use/link.rsp there hold its flags
  TROUPE_CXX         the compiler, behind the compiler cache if there is one
"""

import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

SOURCE_DIR = pathlib.Path(os.environ.get("TROUPE_SOURCE_DIR", ".")).resolve()
BINARY_DIR = pathlib.Path(os.environ.get("TROUPE_BINARY_DIR", "build/release")).resolve()

# All that is compiled here includes troupe.hpp; with g++ the build has read it already.
PRECOMPILED = BINARY_DIR / "use" / "precompiled.hpp"

# What a careful user compiles with. Our headers and our documents must pass it without a word.
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SECONDS_MAX = 110


def compile_object(source, output, *options):
    """Compiles `source` without optimisation; returns (it compiled, what the compiler said)."""
    output.parent.mkdir(parents=True, exist_ok=True)
    return _compile(source, *options, "-c", "-o", str(output))


def compile_for_errors(source, *options):
    """The same where nobody wants the object, which takes half of the time."""
    return _compile(source, *options, "-fsyntax-only")


def _compile(source, *options):
    command = os.environ.get("TROUPE_CXX", "g++").split()
    if PRECOMPILED.with_suffix(".hpp.gch").exists():
        # Not behind the cache, for which that header is more work than the rest. A header that the compiler cannot use is an
        # error, or a warning where they are none: it took three quarters of the time, and nobody saw it.
        # It stands in memory, where g++ would look for garbage all the time (cmake/troupe_flags.cmake).
        command = [command[-1], "-Winvalid-pch", "-include", str(PRECOMPILED), "--param", "ggc-min-heapsize=786432"]
    command += [f"@{BINARY_DIR}/use/compile.rsp", "-O0", *options, str(source)]
    output = pathlib.Path(options[options.index("-o") + 1]) if "-o" in options else None
    return _remembered(source, command, output)


def _remembered(source, command, output):
    """Runs a compilation, or says what it said before if nothing that it reads has changed since."""
    key = hashlib.sha256(repr((command, source.read_text(), _what_is_read())).encode()).hexdigest()
    record = BINARY_DIR / "remembered" / key[:2] / f"{key}.json"
    stamp = output.stat().st_mtime_ns if output and output.exists() else None
    if record.exists():
        succeeded, said, made = json.loads(record.read_text())
        if made == (stamp if succeeded else None):
            return succeeded, said
    succeeded, said = _run(command)
    made = output.stat().st_mtime_ns if succeeded and output else None
    record.parent.mkdir(parents=True, exist_ok=True)
    written = record.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps([succeeded, said, made]))
    written.rename(record)
    return succeeded, said


@functools.cache
def _what_is_read():
    """A text that changes with the headers, the compiler and its flags."""
    found = [os.environ.get("TROUPE_CXX", ""), (BINARY_DIR / "use" / "compile.rsp").read_text()]
    compiler = shutil.which(os.environ.get("TROUPE_CXX", "g++").split()[-1])
    for file in [pathlib.Path(compiler), *(f for folder in ("include", "src", "tests")
                                           for f in sorted((SOURCE_DIR / folder).rglob("*.h*")))]:
        state = file.stat()
        found.append(f"{file} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def link_program(objects, output):
    """Links objects with all components; returns (it linked, what the linker said)."""
    # The cache's launcher passes a link through; it is left in so that TROUPE_CXX is used as given.
    command = os.environ.get("TROUPE_CXX", "g++").split()
    command += [str(o) for o in objects] + [f"@{BINARY_DIR}/use/link.rsp", "-o", str(output)]
    if shutil.which("ld.lld"):
        command.append("-fuse-ld=lld")  # as the build's own programs: a third of the time
    return _run(command)


def run_program(program, seconds_max, *arguments):
    """Runs a program without input; returns (exit status, stdout, stderr), or status None when it hung."""
    try:
        done = subprocess.run([str(program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds_max)
    except subprocess.TimeoutExpired as hung:
        return None, str(hung.stdout or ""), str(hung.stderr or "")
    return done.returncode, done.stdout, done.stderr


def _run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX,
                          env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0, done.stdout
