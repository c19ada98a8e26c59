#!/usr/bin/env python3
"""A shared object with the library in it can be loaded while a program runs.

Usage: loads.py c|python|storage
  c        by dlopen from a C program, two copies of it at once, and once more after dlclose
  python   by Python's ctypes
  storage  how much thread-local storage the whole core takes: all shared objects that are loaded by dlopen
           share about 1,660 bytes of the kind that it uses (docs/decisions/loading.md)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "plugin"
BUILD = pathlib.Path(os.environ["TROUPE_BINARY_DIR"])
CXX = os.environ["TROUPE_CXX"].split()
CORE_BYTES_MAX = 900
STEPS_S = 120


def call(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=STEPS_S, **more)
    if done.returncode != 0:
        sys.exit(f"loads: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def core():
    """The archive of the core, and what it is linked with."""
    for line in (BUILD / "use" / "components").read_text().splitlines():
        name, archive, _, words = line.split("\t")
        if name == "troupe":
            return [archive, "-pthread", *words.split()]
    sys.exit("loads: use/components names no core")


def build(into):
    plugin = into / "libplug.so"
    call(*CXX, f"@{BUILD}/use/compile.rsp", "-O1", "-fPIC", "-shared", HERE / "plug.cpp", *core(), "-o", plugin)
    return plugin


def load_from_c(into):
    plugin, host = build(into), into / "host"
    copy = into / "libcopy.so"
    shutil.copy(plugin, copy)
    call("cc", "-Wall", "-Werror", HERE / "host.c", "-ldl", "-o", host)
    call(host, plugin)
    call(host, plugin, copy)


def load_from_python(into):
    plugin = build(into)
    call(sys.executable, "-c", "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).plug())", plugin)


def weigh(into):
    whole = into / "libwhole.so"
    archive, *words = core()
    call(*CXX, "-shared", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", *words, "-o", whole)
    for line in call("readelf", "-lW", whole).splitlines():
        if re.match(r"\s+TLS\s", line):
            size = int(line.split()[5], 16)
            print(f"loads: {size} bytes")
            if size > CORE_BYTES_MAX:
                sys.exit(f"loads: {size} bytes of thread-local storage; at most {CORE_BYTES_MAX}: put what is large "
                         "or seldom used behind a pointer")
            return
    sys.exit("loads: the core has no thread-local storage")


def main():
    how = sys.argv[1]
    into = BUILD / "package_test" / f"loads_{how}"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    {"c": load_from_c, "python": load_from_python, "storage": weigh}[how](into)


if __name__ == "__main__":
    main()
