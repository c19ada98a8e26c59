#!/usr/bin/env python3
"""A shared object with the library in it can be loaded while a program runs.

Usage: loads.py c|python|shared|storage
  c        by dlopen from a C program, two copies of it at once, and once more after dlclose
  python   by Python's ctypes
  shared   two plugins with one shared library of the core, which shows names of the namespace troupe alone
           (cmake/troupe.map), and each of those that abi/ keeps; ABI_WRITE=1 writes these anew
  storage  how much thread-local storage the whole core takes: all shared objects that are loaded by dlopen
           share about 1,660 bytes of the kind that it uses (docs/decisions/loading.md)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import abi_names

HERE = pathlib.Path(__file__).resolve().parent / "plugin"
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TROUPE_BINARY_DIR"])
CXX = os.environ["TROUPE_CXX"].split()
CORE_BYTES_MAX = 900
STEPS_S = 120


def call(*command, **more):
    more = {"stderr": subprocess.PIPE, **more}
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, timeout=STEPS_S, **more)
    if done.returncode != 0:
        sys.exit(f"loads: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr or ''}")
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
    # Each copy has settings of its own. They would have the same socket: the second one says so.
    runtime_dir = into / "run"
    runtime_dir.mkdir(mode=0o700)
    environment = {**os.environ, "TROUPE_OBSERVE": "1", "XDG_RUNTIME_DIR": str(runtime_dir)}
    seen = call(host, plugin, copy, env=environment, stderr=subprocess.STDOUT)
    if "another copy of the library in this process" not in seen:
        sys.exit(f"loads: two copies were observed at one socket, and none said so:\n{seen}")


def load_from_python(into):
    plugin = build(into)
    call(sys.executable, "-c", "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).plug())", plugin)


def load_shared(into):
    archive, *words = core()
    library = into / "libtroupe.so"
    call(*CXX, "-shared", "-Wl,-soname,libtroupe.so", f"-Wl,--version-script={SOURCE}/cmake/troupe.map", "-Wl,-z,defs",
         "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", *words, "-o", library)
    names = [line.split()[-1] for line in call("nm", "-D", "--defined-only", library).splitlines()]
    foreign = [name for name in names if "6troupe" not in name and not name.startswith("troupe_")]
    if foreign or not names:
        sys.exit(f"loads: the shared library shows foreign names, or none: {foreign[:9]}")
    shown = abi_names.shown(library)
    kept = pathlib.Path(__file__).resolve().parent / "abi" / "libtroupe.txt"
    if "ABI_WRITE" in os.environ:
        kept.write_text("\n".join(shown) + "\n")
    missing = sorted(set(kept.read_text().split()) - set(shown))
    if missing:
        sys.exit("loads: programs that were linked before do not find (docs/stability.md): "
                 + call("c++filt", *missing))
    plugin, copy, host = into / "libplug.so", into / "libcopy.so", into / "host"
    call(*CXX, f"@{BUILD}/use/compile.rsp", "-O1", "-fPIC", "-shared", HERE / "plug.cpp", library, f"-Wl,-rpath,{into}",
         "-o", plugin)
    shutil.copy(plugin, copy)
    call("cc", "-Wall", "-Werror", HERE / "host.c", "-ldl", "-o", host)
    call(host, plugin, copy)


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
    {"c": load_from_c, "python": load_from_python, "shared": load_shared, "storage": weigh}[how](into)


if __name__ == "__main__":
    main()
