"""The public headers, the examples and a program, in each language and by each compiler that docs/platforms.md names.

usage: languages.py gcc | clang16 | clang19 | clang22 | libcxx
gcc, clang16 and so on  the compiler reads all public headers and each example in C++20 and in C++23, with warnings as
                        errors; a program in either, or with a part in each, is linked with this build's library
libcxx                  the core is built with libc++, and examples/hello.cpp runs with it
"""
import itertools
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(os.environ["TROUPE_SOURCE_DIR"])
BUILD = Path(os.environ["TROUPE_BINARY_DIR"])
WORK = BUILD / "package_test"
CONSUMER = SOURCE / "tests/package/consumer"
COMPILERS = {"gcc": "g++", "clang16": "clang++-16", "clang19": "clang++-19", "clang22": "clang++-22"}
LANGUAGES = ("-std=c++20", "-std=c++2b")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast",
            "-Wnon-virtual-dtor", "-Werror")
# Of the coroutines that g++ 12 makes.
WARNINGS_OF_EXAMPLES = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
LIBCXX = ("clang++-22", "-stdlib=libc++")
# Debian's libc++-22-dev has the headers and the archive of 22, and comes with the shared library of 19, which lacks names
# that those headers use.
LIBCXX_LINKED = "-static-libstdc++"
STEP_S = 2400  # the whole core, on a machine that does other things


def call(*command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=STEP_S, check=False, **more)


def skipped(needs):
    print(f"package: skipped: needs {needs}")
    sys.exit(77)


def definitions():
    """How this build's library was compiled."""
    return [line for line in (BUILD / "use/compile.rsp").read_text().split() if line.startswith("-DTROUPE_")]


def faults(done, what):
    return [] if done.returncode == 0 else [f"{what}:\n" + "\n".join(done.stdout.splitlines()[:20])]


def all_headers(name):
    """One file that includes them all, and uses some."""
    WORK.mkdir(parents=True, exist_ok=True)
    headers = sorted((SOURCE / "include").rglob("*.hpp"))
    assert len(headers) > 100
    together = WORK / f"all_headers_{name}.cpp"
    together.write_text("".join(f"#include <{header.relative_to(SOURCE / 'include')}>\n" for header in headers)
                        + f'#include "{CONSUMER}/main.cpp"\n')
    return together


def flags_of(example):
    """Of the modules that a line `// needs:` names; None if one of them is not here."""
    modules = [word for line in example.read_text().splitlines() if line.startswith("// needs: ") for word in line.split()[2:]]
    if not modules:
        return []
    done = call("pkg-config", "--cflags", *modules)
    return done.stdout.split() if done.returncode == 0 else None


def reads(command, source, warnings):
    done = call(*command, *warnings, *definitions(), f"-I{SOURCE}/include", f"-I{CONSUMER}",
                "-isystem", "/usr/include/postgresql", "-fsyntax-only", source)
    return faults(done, f"{' '.join(command)} refuses {source}")


def links(compiler, main, part):
    """A program whose two sources are in the languages `main` and `part`."""
    name = WORK / f"language_{compiler}{main}{part}"
    libraries = (BUILD / "use/link.rsp").read_text().split()
    if any(word.startswith("-fsanitize") for word in libraries):
        return []
    objects = []
    for language, source in ((main, "main"), (part, "part")):
        objects.append(f"{name}.{source}.o")
        done = call(compiler, language, "-O1", *definitions(), f"-I{SOURCE}/include", "-c", CONSUMER / f"{source}.cpp",
                    "-o", objects[-1])
        if done.returncode != 0:
            return faults(done, f"{compiler} {language} refuses {source}.cpp")
    done = call(compiler, *objects, f"@{BUILD}/use/link.rsp", "-o", name)
    if done.returncode != 0:
        return faults(done, f"{compiler} does not link {main} and {part} with the library")
    done = call(name)
    return [] if done.stdout == "42\n" else [f"{name} printed {done.stdout!r} and ended with {done.returncode}"]


def check(compiler):
    if not shutil.which(compiler):
        skipped(compiler)
    together = all_headers(compiler)
    examples = []
    for example in sorted((SOURCE / "examples").glob("*.cpp")):
        flags = flags_of(example)
        if flags is None:
            print(f"languages: {example.name} is left out: its libraries are not here")
        else:
            examples.append((example, flags))
    calls = []
    for language in LANGUAGES:
        calls.append((reads, (compiler, language), together, WARNINGS))
        calls += [(reads, (compiler, language, *flags), example, WARNINGS_OF_EXAMPLES) for example, flags in examples]
    calls += [(links, compiler, main, part) for main, part in itertools.product(LANGUAGES, LANGUAGES)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(itertools.chain.from_iterable(pool.map(lambda made: made[0](*made[1:]), calls)))
    print("\n".join(found) or f"{len(calls)} compilations and programs are as they have to be")
    return 1 if found else 0


def libcxx():
    WORK.mkdir(parents=True, exist_ok=True)
    probe = WORK / "libcxx.cpp"
    probe.write_text("#include <version>\nint main() { return _LIBCPP_VERSION < 220000; }\n")
    if not shutil.which(LIBCXX[0]) or call(*LIBCXX, probe, "-o", WORK / "libcxx").returncode != 0:
        skipped("libc++")
    together = all_headers("libcxx")
    found = [fault for language in LANGUAGES for fault in reads((*LIBCXX, language), together, WARNINGS)]
    folder = WORK / "libcxx_build"
    launcher = os.environ.get("TROUPE_CXX", "").split()[:-1]
    done = call("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_CXX_COMPILER={LIBCXX[0]}", f"-DCMAKE_CXX_FLAGS={LIBCXX[1]}", f"-DCMAKE_EXE_LINKER_FLAGS={LIBCXX_LINKED}",
                f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(launcher)}",
                "-DTROUPE_TESTS=OFF", "-DTROUPE_TOOLS=OFF", "-DTROUPE_EXAMPLES=ON", "-DTROUPE_WERROR=OFF",
                "-DTROUPE_PRECOMPILE=ON")
    found += faults(done, "the build with libc++ is not configured")
    if not found:
        found += faults(call("cmake", "--build", folder, "--target", "example_hello"), "hello is not built with libc++")
    if not found:
        done = call(folder / "examples/hello", "Ada")
        if (done.returncode, done.stdout) != (0, "hello, world\nhello, Ada\n"):
            found.append(f"hello printed {done.stdout!r} and ended with {done.returncode}")
        if "libstdc++" in call("ldd", folder / "examples/hello").stdout or "std::__1::" not in call("nm", "-C", folder / "examples/hello").stdout:
            found.append("hello is not linked with libc++ alone")
    print("\n".join(found) or "the headers, the core and hello work with libc++")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(libcxx() if sys.argv[1] == "libcxx" else check(COMPILERS[sys.argv[1]]))
