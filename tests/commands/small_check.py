"""What ./test does with a project of a few lines: which suites it runs, in which order, and what it says.

The project is a copy of ./test and its scripts, with a build of its own: its suites are commands that
note what they see. Arguments are the names of the checks to do, of all functions check_*.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "small_check"
SECONDS_MAX = 500

# No language, for CMake tries a compiler for seconds. A build is looked at four times a second, and a
# compiler may be faster: the sleep lets a unit be seen.
BUILD = """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
enable_testing()
function(unit name)
  add_custom_command(OUTPUT ${name}.o DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}.cpp DEPFILE ${name}.d
      COMMAND sleep 1 COMMAND g++ -MD -MF ${name}.d -MT ${name}.o -o ${name}.o -c ${CMAKE_SOURCE_DIR}/src/${name}.cpp)
endfunction()
unit(program)
add_custom_command(OUTPUT program DEPENDS program.o COMMAND g++ -o program program.o)
add_custom_target(everything ALL DEPENDS program)
"""
# The suite `beside` ends when the next configuration is built, and `measures` refuses to run before.
SUITES = """
add_test(NAME core/program COMMAND ${CMAKE_BINARY_DIR}/program)
add_test(NAME core/measures COMMAND test -e ${CMAKE_SOURCE_DIR}/build/dev/program)
set_tests_properties(core/measures PROPERTIES RUN_SERIAL TRUE)
add_test(NAME core/deep COMMAND bash -c "test -n \\"$TROUPE_DEEP\\"")
set_tests_properties(core/deep PROPERTIES LABELS deep)
if(CMAKE_BINARY_DIR MATCHES "release$")
  add_test(NAME core/beside COMMAND bash -c
      "until test -e ${CMAKE_SOURCE_DIR}/build/dev/program; do read -t 0.1 < <(:) || true; done")
  set_tests_properties(core/beside PROPERTIES TIMEOUT 400)
endif()
"""


def fail(text):
    print(f"small_check: {text}")
    sys.exit(1)


def preset(name):
    return {"name": name, "configurePreset": name,
            "filter": {"exclude": {"label": "^deep$"}}, "execution": {"noTestsAction": "error"}}


def make(build, suites, program="int main() {}\n"):
    """A fresh copy, in a repository of its own."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "src").mkdir(parents=True)
    shutil.copy(SOURCE / "test", FOLDER / "test")
    shutil.copytree(SOURCE / "scripts", FOLDER / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (FOLDER / "src" / "program.cpp").write_text(program)
    (FOLDER / "CMakeLists.txt").write_text(build + suites)
    names = ["release", "dev"]
    (FOLDER / "CMakePresets.json").write_text(json.dumps({
        "version": 6,
        "configurePresets": [{"name": name, "generator": "Ninja",
                              "binaryDir": "${sourceDir}/build/${presetName}"} for name in names],
        "buildPresets": [{"name": name, "configurePreset": name} for name in names],
        "testPresets": [preset(name) for name in names]}))


def test(*words, **more):
    """The status and the output of ./test."""
    environment = {**os.environ, "TROUPE_NO_INSTALL": "1"}
    environment.pop("TROUPE_DEEP", None)
    environment.pop("CI", None)
    environment.update(more)
    done = subprocess.run([FOLDER / "test", *words], env=environment, text=True, timeout=SECONDS_MAX,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def expect(done, status, *patterns):
    for pattern in patterns:
        if not re.search(pattern, done[1], re.MULTILINE):
            fail(f"no line is like '{pattern}' in\n{done[1]}")
    if done[0] != status:
        fail(f"the status is {done[0]}, not {status}:\n{done[1]}")


def check_pipeline():
    """Suites run beside the build of the next configuration, but not those that measure."""
    make(BUILD, SUITES)
    expect(test("--in", "release", "--in", "dev"), 0,
           r"^release  3 passed, 0 failed, 0 skipped; build \d+ s, tests \d+ s$",
           r"^dev      2 passed, 0 failed, 0 skipped; ", r"^slowest units, ", r"^5 passed, 0 failed\n\Z")
    # The second time there are figures of the first.
    expect(test("--in", "release", "--only", "beside"), 0, r"^1 passed, 0 failed\n\Z")
    expect(test("--in", "release", "--only", "nowhere"), 1, r"does --only match a name")


def check_failures():
    """A configuration that does not build is one failure, and the next one runs all the same."""
    make(BUILD + 'if(CMAKE_BINARY_DIR MATCHES "release$")\n'
         "  add_custom_target(broken ALL COMMAND false)\nendif()\n",
         "add_test(NAME core/program COMMAND ${CMAKE_BINARY_DIR}/program)\n", "int main() { return 3; }\n")
    expect(test("--in", "release", "--in", "dev"), 1,
           r"^release  does not build: counted as 1 failed$", r"^dev      0 passed, 1 failed", r"repeat: \./test --in dev --only '\^core/program\$'",
           r"^0 passed, 2 failed\n\Z")


def check_repeat():
    """Each run of a suite is reported, and a load that was asked for ends with it."""
    make(BUILD, """
add_test(NAME core/program COMMAND ${CMAKE_BINARY_DIR}/program)
add_test(NAME core/flaky COMMAND bash -c "test -e once && rm once || { touch once; exit 1; }")
""")
    expect(test("--repeat", "2", "--beside-load", "program"), 0, r"^release  run 1: 0 failed$",
           r"^release  run 2: 0 failed$", r"^2 passed, 0 failed\n\Z")
    expect(test("--repeat", "2", "flaky"), 1, r"^release  run 1: 1 failed$",
           r"^release  run 2: 0 failed$", r"^1 passed, 1 failed\n\Z")
    # Counted beside a load, and chosen by the count where no name is given.
    (FOLDER / "tests/ledger").mkdir(parents=True, exist_ok=True)
    (FOLDER / "tests/ledger/release.txt").write_text("core/flaky 1\ncore/program 1\n")
    counts = FOLDER / "tests/repeats.txt"
    counts.write_text("# below 20: 1\ncore/flaky 20\ncore/program 18\n")
    expect(test("--repeat", "2"), 2, "wants the name of the suites")
    expect(test("--repeat", "2", "--beside-load"), 0, r"^2 passed, 0 failed\n\Z")
    if counts.read_text().splitlines()[1:] != ["# below 20: 0", "core/flaky 20", "core/program 20"]:
        fail(f"two runs are not counted:\n{counts.read_text()}")
    expect(test("--repeat", "2", "--beside-load"), 1, "each suite has passed often enough", r"^0 passed, 0 failed\n\Z")


def slice_file(**of_slices):
    (FOLDER / "tests").mkdir(exist_ok=True)
    (FOLDER / "tests/slices.ini").write_text("".join(
        f"[{name.replace('_', '.')}]\nin = dev\n{lines}\n\n" for name, lines in of_slices.items()))


def check_slices():
    """A slice runs alone or first, and fails a run only after it has passed often enough."""
    make(BUILD, SUITES + """
add_test(NAME core/broken COMMAND false)
add_test(NAME core/endless COMMAND tail -f /dev/null)
set_tests_properties(core/broken core/endless PROPERTIES LABELS deep)
""")
    deep = "suites = ^core/deep$\nenvironment =\n    TROUPE_DEEP=1\n    TROUPE_DEEP=2\npassed = {}"
    broken = "suites = ^core/broken$\npassed = {}"
    slice_file(a_good=deep.format(0), a_bad=broken.format(20))
    expect(test("--deep", "list"), 0, r"^a\.good +dev +passed +0 ")
    expect(test("--deep", "a"), 1, r"^slice a\.good \(dev\): 2 passed, 0 failed",
           r"^slice a\.bad \(dev\): 0 passed, 1 failed", r"^1 passed, 1 failed\n\Z")
    expect(test("--deep", "a.good", "--repeat", "2", "--beside-load"), 0, r"has passed 2 times in a row",
           r"^2 passed, 0 failed\n\Z")
    expect(test("--deep", "b"), 2, "there is no slice 'b'")
    slice_file(a_bad=broken.format(19))
    expect(test("--in", "dev", "--with-slice"), 0, r"^slice a\.bad fails; it is not counted",
           r"^2 passed, 0 failed\n\Z")
    slice_file(a_bad=broken.format(20))
    expect(test("--in", "dev", "--with-slice"), 1, r"^slice a\.bad has passed 20 times .* counted as 1 failed$",
           r"^2 passed, 1 failed\n\Z")
    slice_file(a_bad="suites = ^core/endless$\npassed = 0")
    expect(test("--in", "dev", "--with-slice", TROUPE_SLICE_SECONDS="8"), 0, r"ended at its limit of 8 s")


def git(*words):
    subprocess.run(["git", "-C", FOLDER, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                   stdout=subprocess.DEVNULL)


def check_changed():
    """A change chooses the suites of its layer, and one of a script those that run it."""
    make(BUILD, """
add_test(NAME base/near COMMAND true)
add_test(NAME sync/far COMMAND ${CMAKE_BINARY_DIR}/program)
add_test(NAME trace COMMAND bash ${CMAKE_SOURCE_DIR}/tests/trace/check.sh)
add_test(NAME tidy/rule COMMAND true)
""")
    for path, text in (("src/base" "/x.cpp", "int x;\n"), ("src/base" "/x.test.cpp", "TEST(near, x) {}\n"),
                       ("src/sync" "/y.test.cpp", "TEST(far, y) {}\n"), ("tests/trace" "/check.sh", "true\n"),
                       (".gitignore", "/build/\n")):
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    expect(test("--changed", "--in", "dev"), 1, r"^0 files are changed", r"^0 passed, 0 failed\n\Z")
    (FOLDER / "src/base" "/x.cpp").write_text("int x = 1;\n")
    expect(test("--changed", "--in", "dev"), 0, r"^1 files are changed; of 4 suites they reach 2$",
           r"unit suites of base$", r"^2 passed, 0 failed\n\Z")
    git("commit", "-qam", "second")
    (FOLDER / "tests/trace" "/check.sh").write_text("exit 1\n")
    expect(test("--changed=HEAD~1", "--in", "dev"), 1, r"^2 files are changed; of 4 suites they reach 3$",
           r"--- trace", r"^2 passed, 1 failed\n\Z")
    expect(test("--changed=nowhere", "--in", "dev"), 1, r"is 'nowhere' a revision")


def main():
    for name, check in list(globals().items()):
        if name.startswith("check_") and (len(sys.argv) < 2 or name in sys.argv[1:]):
            check()
    shutil.rmtree(FOLDER)
    print("test: does what it promises with a small project")
    return 0


if __name__ == "__main__":
    sys.exit(main())
