"""toolchain: compiles C++ for the test scripts, with the flags of the build that runs them.

CTest gives a script its surroundings in the environment (troupe_script_test in cmake/troupe_tests.cmake):
  TROUPE_SOURCE_DIR  the root of the sources
  TROUPE_BINARY_DIR  the build; use/compile.rsp and use/link.rsp there hold its flags
  TROUPE_CXX         the compiler, behind the compiler cache if there is one
"""

import os
import pathlib
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
        # Not behind the cache, for which that header is more work than the rest.
        command = [command[-1], "-include", str(PRECOMPILED)]
    command += [f"@{BINARY_DIR}/use/compile.rsp", "-O0", *options, str(source)]
    return _run(command)


def link_program(objects, output):
    """Links objects with all components; returns (it linked, what the linker said)."""
    # The cache's launcher passes a link through; it is left in so that TROUPE_CXX is used as given.
    command = os.environ.get("TROUPE_CXX", "g++").split()
    command += [str(o) for o in objects] + [f"@{BINARY_DIR}/use/link.rsp", "-o", str(output)]
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
