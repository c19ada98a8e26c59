"""The core for AArch64: cross-compiled with Debian's compiler, its unit tests and a stress run by qemu.

usage: arm64.py
GoogleTest is compiled from Debian's sources. What this shows, and what it cannot show, is in
docs/protocols/relaxed_orders.md.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["TROUPE_SOURCE_DIR"])
WORK = Path(os.environ["TROUPE_BINARY_DIR"]) / "package_test/arm64"
LAUNCHER = os.environ["TROUPE_CXX"].split()[:-1]
TOOLCHAIN = SOURCE / "tests/package/arm64.cmake"
GOOGLETEST = Path("/usr/src/googletest")
QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
NEEDED = ("aarch64-linux-gnu-g++-12", QEMU[0])
# The unit tests of the layers with lock-free classes, and the stress of the pool with several workers: all settings of
# that would take ten times as long, since qemu translates each instruction.
PROGRAMS = {"test_base": "*", "test_memory": "*", "test_sched": "*", "test_stress": "*/work_stealing_2:*/work_stealing_8"}
STEP_S = 2000


def call(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=STEP_S, check=False)


def expect(done, fault):
    if done.returncode != 0:
        sys.exit(f"arm64: {fault}:\n{done.stdout[-3000:]}")


def configure(source, folder, *settings):
    expect(call("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}", f"-DTROUPE_ARM64_PREFIX={WORK}/prefix", *settings),
           f"{source} is not configured")


def main():
    for tool in NEEDED:
        if not shutil.which(tool):
            print(f"package: skipped: needs {tool}")
            return 77
    if not GOOGLETEST.is_dir():
        print(f"package: skipped: needs {GOOGLETEST}")
        return 77
    # The core without liburing: the packages of this machine are for another processor.
    (WORK / "no_packages").mkdir(parents=True, exist_ok=True)
    os.environ["PKG_CONFIG_LIBDIR"] = str(WORK / "no_packages")
    configure(GOOGLETEST, WORK / "googletest", f"-DCMAKE_INSTALL_PREFIX={WORK}/prefix")
    expect(call("cmake", "--build", WORK / "googletest", "--target", "install"), "GoogleTest is not built")
    build = WORK / "build"
    configure(SOURCE, build, "-DTROUPE_PRECOMPILE=ON", "-DTROUPE_TESTS=ON", "-DTROUPE_TOOLS=OFF", "-DTROUPE_EXAMPLES=OFF",
              "-DTROUPE_LLD=", f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(LAUNCHER)}")
    expect(call("cmake", "--build", build, "--target", *PROGRAMS), "the core and its tests are not built")
    for program, cases in PROGRAMS.items():
        binary = build / "tests" / program
        if "AArch64" not in call("readelf", "-h", binary).stdout:
            sys.exit(f"arm64: {binary} is not for AArch64")
        expect(call(*QEMU, binary, "--gtest_brief=1", f"--gtest_filter={cases}"), f"{program} fails")
    print(f"arm64: {', '.join(PROGRAMS)} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
