"""Programs under ThreadSanitizer, against an installation with TROUPE_TSAN_PACKAGE. The core is compiled twice for it.

usage: tsan.py
`quiet` uses actors, asks, channels, timers and I/O: nothing is reported. `race` shares a number of its own: that is. The
same project without -fsanitize=thread links the other library.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["TROUPE_SOURCE_DIR"])
WORK = Path(os.environ["TROUPE_BINARY_DIR"]) / "package_test/tsan"
# The compiler of our own builds for ThreadSanitizer, behind the compiler cache of the build that runs this.
COMPILER = "clang++-22"
LAUNCHER = os.environ["TROUPE_CXX"].split()[:-1]
FOREIGN = ("json", "cron", "sqlite", "durable", "postgres", "durable_postgres", "dns", "tls", "nats", "cluster", "http", "otlp",
           "observe_page")
STEP_S = 2400  # the core twice, on a machine that does other things
RUNS = 5


def call(*command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=STEP_S, check=False, **more)


def expect(done, what):
    if done.returncode != 0:
        sys.exit(f"tsan: {what}:\n{done.stdout[-3000:]}")


def install():
    build = WORK / "build"
    expect(call("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_COMPILER={COMPILER}",
                f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(LAUNCHER)}", "-DTROUPE_TSAN_PACKAGE=ON", "-DTROUPE_TESTS=OFF",
                "-DTROUPE_TOOLS=OFF", "-DTROUPE_PRECOMPILE=ON",
                f"-DTROUPE_WITHOUT={';'.join(f'troupe::{name}' for name in FOREIGN)}"),
           "the library is not configured")
    expect(call("cmake", "--build", build), "the library is not built")
    prefix = WORK / "prefix"
    shutil.rmtree(prefix, ignore_errors=True)
    expect(call("cmake", "--install", build, "--prefix", prefix), "the library is not installed")
    return prefix


def programs(prefix, name, *settings):
    """The folder of the two programs, built with these settings."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    expect(call("cmake", "-S", SOURCE / "tests/package/tsan", "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={prefix}", *settings), f"{name} is not configured")
    expect(call("cmake", "--build", folder), f"{name} is not built")
    return folder


def is_watched(program):
    return "__tsan_func_entry" in call("nm", program).stdout


def functions(program, report):
    """Those at the places that a report names, also where no symbolizer of the compiler is installed."""
    places = re.findall(rf"{program.name}\+(0x[0-9a-f]+)", report)
    return report + (call("addr2line", "-Cfe", program, *places).stdout if places else "")


def faults_of(folder):
    """Of the two programs that are looked at."""
    for run in range(RUNS):
        done = call(folder / "quiet")
        if done.returncode != 0 or done.stdout != "6000 2000 32000\n":
            yield f"quiet, run {run}, ended with {done.returncode}:\n{done.stdout[:3000]}"
            break
    said = [functions(folder / "race", call(folder / "race").stdout) for _ in range(RUNS)]
    if not any("data race" in text and "add_to_the_shared_number" in text for text in said):
        yield f"race: the race of the program was not found:\n{said[0][:3000]}"
    for name in ("quiet", "race"):
        if not is_watched(folder / name):
            yield f"{name} is not compiled for ThreadSanitizer"


def main():
    if not shutil.which(COMPILER):
        print(f"package: skipped: needs {COMPILER}")
        return 77
    WORK.mkdir(parents=True, exist_ok=True)
    prefix = install()
    found = list(faults_of(programs(prefix, "by_flags", "-DCMAKE_CXX_FLAGS=-fsanitize=thread")))
    plain = programs(prefix, "plain")
    if is_watched(plain / "quiet"):
        found.append("a program without -fsanitize=thread is linked with the library for it")
    if call(plain / "quiet").stdout != "6000 2000 32000\n":
        found.append("a program without -fsanitize=thread does not work")
    if not is_watched(programs(prefix, "by_variable", "-DTROUPE_TSAN=ON") / "quiet"):
        found.append("TROUPE_TSAN does not choose the library")
    print("\n".join(found) or "ThreadSanitizer finds the race of a program and no other")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
