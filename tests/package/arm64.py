"""troupe for AArch64: cross-compiled with Debian's compiler, and run by qemu.

usage: arm64.py core | components
core        the core without liburing, its unit tests and a stress; GoogleTest is compiled from Debian's sources
components  all components with the libraries that they need, which a mirror of Debian has; a program with a server and a
            client of HTTP, and one with a schedule
What this shows, and what it cannot show, is in docs/protocols/relaxed_orders.md.
"""
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

SOURCE = Path(os.environ["TROUPE_SOURCE_DIR"])
WORK = Path(os.environ["TROUPE_BINARY_DIR"]) / "package_test"
LAUNCHER = os.environ["TROUPE_CXX"].split()[:-1]
TOOLCHAIN = SOURCE / "tests/package/arm64.cmake"
GOOGLETEST = Path("/usr/src/googletest")
COMPILER, QEMU = "aarch64-linux-gnu-g++-12", "qemu-aarch64"
# The unit tests of the core, and the stress of the pool with several workers: all settings of that would take ten times
# as long, since qemu translates each instruction. qemu-user does not know RLIMIT_AS, and has no room for the last
# real-time signals, of which a copy of a stack takes one.
UNITS = ("reflect", "base", "observe", "memory", "context", "sched", "task", "actor", "io", "jobs", "runtime", "parallel", "kit")
PROGRAMS = {**{f"test_{unit}": "*" for unit in UNITS}, "test_stress": "*/work_stealing_2:*/work_stealing_8",
            "test_context": "-context.without_memory_from_the_kernel_it_says_so_and_goes_on",
            "test_task": "-stack_copy.has_the_frames_of_a_thread_that_computes:stack_copy.ends_at_the_end_of_the_stack:"
                         "stack_copy.gives_up_a_thread_that_takes_no_signal"}
# Debian's packages for AArch64 that docs/dependencies.md names, but for the sources of llhttp, which are of no processor.
PACKAGES = ("libbrotli-dev", "libc-ares-dev", "libhowardhinnant-date-dev", "libnghttp2-dev", "libpq-dev", "libsimdjson-dev",
            "libsqlite3-dev", "libssl-dev", "liburing-dev", "libzstd-dev", "nlohmann-json3-dev", "zlib1g-dev")
MIRROR = os.environ.get("TROUPE_DEBIAN_MIRROR", "http://deb.debian.org/debian")
LLHTTP = ("-Dllhttp_HEADERS=/usr/share/include/llhttp", "-Dllhttp_SOURCES=/usr/share/llhttp")
USERS = {"http": ["tests/package/programs/http.cpp"], "cron": ["tests/package/consumer/cron/main.cpp"]}
STEP_S = 2400
# The headers that ctest's own build has precompiled are for this machine's processor.
os.environ.pop("TROUPE_PRECOMPILED_IN", None)
# More of the same test would show no other instruction.
os.environ.pop("TROUPE_DEEP", None)


def call(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=STEP_S, check=False)


def expect(done, fault):
    if done.returncode != 0:
        sys.exit(f"arm64: {fault}:\n{done.stdout[-3000:]}")
    return done.stdout


def skipped(needs):
    print(f"package: skipped: needs {needs}")
    sys.exit(77)


def expect_tools(*tools):
    for tool in tools:
        if not shutil.which(tool):
            skipped(tool)


def configure(source, folder, *settings):
    return expect(call("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                       f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}", *settings), f"{source} is not configured")


def configure_troupe(folder, *settings):
    return configure(SOURCE, folder, "-DTROUPE_PRECOMPILE=ON", "-DTROUPE_TOOLS=OFF", "-DTROUPE_EXAMPLES=OFF",
                     "-DTROUPE_LLD=", f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(LAUNCHER)}", *settings)


def expect_processor(binary):
    if "AArch64" not in call("readelf", "-h", binary).stdout:
        sys.exit(f"arm64: {binary} is not for AArch64")


def core():
    expect_tools(COMPILER, QEMU)
    if not GOOGLETEST.is_dir():
        skipped(GOOGLETEST)
    folder = WORK / "arm64"
    # The packages of this machine are for another processor.
    (folder / "no_packages").mkdir(parents=True, exist_ok=True)
    os.environ["PKG_CONFIG_LIBDIR"] = str(folder / "no_packages")
    prefix = f"-DTROUPE_ARM64_PREFIX={folder}/prefix"
    configure(GOOGLETEST, folder / "googletest", prefix, f"-DCMAKE_INSTALL_PREFIX={folder}/prefix")
    expect(call("cmake", "--build", folder / "googletest", "--target", "install"), "GoogleTest is not built")
    configure_troupe(folder / "build", prefix, "-DTROUPE_TESTS=ON")
    expect(call("cmake", "--build", folder / "build", "--target", *PROGRAMS), "the core and its tests are not built")
    for program, cases in PROGRAMS.items():
        binary = folder / "build/tests" / program
        expect_processor(binary)
        expect(call(QEMU, "-L", "/usr/aarch64-linux-gnu", binary, "--gtest_brief=1", f"--gtest_filter={cases}"), f"{program} fails")
    return f"{', '.join(PROGRAMS)} pass"


def make_system(folder):
    """The files of the packages, none of which is run. Their absolute links would lead into this machine."""
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/bookworm/InRelease", timeout=20).close()
    except (OSError, urllib.error.URLError):
        skipped(f"a Debian mirror: {MIRROR} does not answer")
    shutil.rmtree(folder, ignore_errors=True)
    expect(call("mmdebstrap", "--mode=root", "--architectures=arm64", "--variant=extract", f"--include={','.join(PACKAGES)}",
                "bookworm", folder, MIRROR), "the packages for AArch64 are not to be had")
    for link in folder.rglob("*"):
        if link.is_symlink() and os.readlink(link).startswith("/"):
            target = folder / os.readlink(link)[1:]
            link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))


def components():
    expect_tools(COMPILER, QEMU, "mmdebstrap")
    if os.geteuid() != 0:
        skipped("root")
    folder = WORK / "arm64_components"
    system = folder / "system"
    folder.mkdir(parents=True, exist_ok=True)
    make_system(system)
    os.environ["PKG_CONFIG_LIBDIR"] = f"{system}/usr/lib/aarch64-linux-gnu/pkgconfig:{system}/usr/share/pkgconfig"
    os.environ["PKG_CONFIG_SYSROOT_DIR"] = str(system)
    build = folder / "build"
    # Not optimised, which takes half the time: `core` is.
    said = configure_troupe(build, f"-DTROUPE_ARM64_SYSTEM={system}", "-DTROUPE_TESTS=OFF", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
                            *LLHTTP)
    if "left out" in said:
        sys.exit(f"arm64: a component is left out:\n{said[-3000:]}")
    expect(call("cmake", "--build", build), "the components are not built")
    for name, sources in USERS.items():
        program = folder / name
        expect(call(COMPILER, f"--sysroot={system}", f"@{build}/use/compile.rsp", "-O1", *(SOURCE / one for one in sources),
                    f"@{build}/use/link.rsp", "-o", program), f"a program with {name} is not built")
        expect_processor(program)
        answer = expect(call(QEMU, "-L", system, program), f"a program with {name} fails")
        if answer != "42\n":
            sys.exit(f"arm64: a program with {name} printed {answer!r}")
    return f"all components are built, and programs with {' and '.join(USERS)} work"


if __name__ == "__main__":
    print(f"arm64: {core() if sys.argv[1] == 'core' else components()}")
