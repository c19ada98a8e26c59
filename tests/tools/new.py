"""`troupe new`: each kind of project builds at once against the installed package and passes its test; bad names and full folders are refused.

Usage: new.py plain|http|durable|cluster|ci

ci  a plain project, whose ci.sh builds all presets, and whose settings of clang-tidy find nothing in it
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

KIND = sys.argv[1]
SECONDS_MAX = 500  # a machine may have much else to do
CLANG_TIDY = "clang-tidy-22"
LAUNCHER, _, COMPILER = os.environ["TROUPE_CXX"].rpartition(" ")
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_new"))
PREFIX = FOLDER / "prefix"
TOOL = PREFIX / "bin/troupe"
# The installed tool, which has nothing of the sources beside it.
ENVIRONMENT = {**os.environ, "CXX": COMPILER, "CMAKE_CXX_COMPILER_LAUNCHER": LAUNCHER.replace(" ", ";"), "CMAKE_PREFIX_PATH": str(PREFIX)}


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def run(*words, cwd=FOLDER, **more):
    return subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env={**ENVIRONMENT, **more})


def must(*words, **more):
    done = run(*words, **more)
    check(" ".join(map(str, words)), done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def check_refused(text, *words, status=1):
    before = sorted(FOLDER.rglob("*"))
    done = run(TOOL, "new", *words)
    check(f"{words} is refused", done.returncode == status and text in done.stderr and done.stderr.count("\n") == 1, done)
    check(f"{words} leaves nothing", sorted(FOLDER.rglob("*")) == before, words)


def check_refusals():
    for name in "", "1st", "_a", "a b", "a/b", "../a", "a.b", "ä", "a" * 65:
        check_refused("begin with a letter", name)
    for name in "test", "all", "CMakeFiles":
        check_refused("since CMake uses it", name)
    check_refused("excludes", "a", "--http", "--cluster", status=2)
    check_refused("NAME is required", status=2)
    (FOLDER / "full").mkdir()
    (FOLDER / "full/mine").write_text("kept")
    check_refused("empty the folder first", "full")
    (FOLDER / "file").write_text("kept")
    check_refused("is no folder", "file")
    (FOLDER / "dangling").symlink_to("nowhere")
    check_refused("is no folder", "dangling")
    (FOLDER / "empty").mkdir()
    must(TOOL, "new", "empty")
    if os.geteuid() != 0:
        (FOLDER / "closed").mkdir(mode=0o500)
        check_refused("closed/", "closed")
    full = run("bash", "-c", f"ulimit -f 0; trap '' XFSZ; {TOOL} new limited")
    check("the file that cannot be written is named", full.returncode == 1 and re.search(r"limited/\S+ cannot be written: .*delete the folder limited", full.stderr), full)


def check_texts():
    for words in ("--help",), ("help", "--man"), ("completion", "bash"), ("completion", "zsh"):
        text = must(TOOL, *words).replace("\\-", "-")
        check(f"{words} has the command", re.search(r"\bnew\b", text) and (words == ("--help",) or "--durable" in text), text)


def check_project(project):
    found = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    check("its files", found == [".clang-format", ".clang-tidy", ".gitignore", "CMakeLists.txt", "CMakePresets.json", "README.md", "ci.sh", "src/main.cpp",
                                 "src/service.cpp", "src/service.hpp", "tests/seeds.hpp", "tests/service_test.cpp"], found)
    left = [name for name in found if re.search(r"%[A-Z]+%", (project / name).read_text())]
    check("no token is left", not left, left)
    check("ci.sh is a program", os.access(project / "ci.sh", os.X_OK))
    if shutil.which("clang-format"):
        must("clang-format", "--dry-run", "-Werror", *project.glob("*/*.?pp"), cwd=project)
    built = must("cmake", "--workflow", "--preset", "debug", cwd=project)
    check("without a warning", "warning" not in built.lower(), built)
    check("its test ran", "100% tests passed, 0 tests failed out of 1" in built, built)


def check_replay(project):
    """A test that fails names the seed, and fails again with it alone."""
    test = project / "tests/service_test.cpp"
    test.write_text(test.read_text().replace("EXPECT_EQ(ada.get() + bob.get(), 100)", "EXPECT_EQ(ada.get(), 50)"))
    must("cmake", "--build", "--preset", "debug", cwd=project)
    failed = run(project / "build/debug/a-project_test")
    seed = re.search(r"replay it with (TROUPE_SEED)=(\d+)", failed.stdout)
    check("a failure names its seed", failed.returncode == 1 and seed, failed)
    again = run(project / "build/debug/a-project_test", **{seed[1]: seed[2]})

    def value_of(text):
        return re.findall(r"Which is: (\d+)|ada.get\(\)\n\s+Which is: (\d+)|^  (\d+)$", text, re.M)[:1]
    check("the seed repeats it", again.returncode == 1 and value_of(again.stdout) == value_of(failed.stdout), (failed, again))


def check_ci(project):
    said = must(project / "ci.sh")
    check("each preset passes", said.count("100% tests passed, 0 tests failed out of 1") == 3, said)
    if not shutil.which(CLANG_TIDY):
        print(f"new: partly skipped: needs {CLANG_TIDY}")
        return
    must(CLANG_TIDY, "--verify-config", cwd=project)
    must(CLANG_TIDY, "--quiet", "-p", "build/debug", "--warnings-as-errors=*", *project.glob("*/*.cpp"), cwd=project)


def check_ends_by_signal(program, *arguments):
    for number in signal.SIGTERM, signal.SIGINT:
        started = subprocess.Popen([program, *arguments], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = started.stdout.readline()
            check("it says that it is ready", line.endswith("\n"), line)
            started.send_signal(number)
            check(f"{number} ends it", started.wait(timeout=SECONDS_MAX) == 0, started.returncode)
        finally:
            started.kill()


def check_program(program):
    if KIND in ("plain", "ci"):
        bought = re.fullmatch(r"Ada bought (\d+), Bob (\d+)\n", must(program, "1000"))
        check("all items are bought", bought and int(bought[1]) + int(bought[2]) == 1000, bought)
    elif KIND == "durable":
        for words, cents in (("alice", "100"), 100), (("alice", "100"), 200), (("alice", "bob", "60"), 140), (("bob", "1"), 61):
            said = must(program, *words)
            check(f"{words}", said == f"{words[0]} has {cents} cents\n", said)
        poor = run(program, "alice", "bob", "1000")
        check("what cannot be paid is refused", poor.returncode == 1 and "not enough money" in poor.stderr, poor)
        check("the tool shows it", "Account" in must(TOOL, "store", "accounts.db", "ls"))
    else:
        check_ends_by_signal(program, *(["127.0.0.1:0"] if KIND == "http" else ["pen"]))


def main():
    try:
        must("cmake", "--install", os.environ["TROUPE_BINARY_DIR"], "--prefix", PREFIX)
        if KIND == "plain":
            check_refusals()
            check_texts()
        said = must(TOOL, "new", "a-project", *([] if KIND in ("plain", "ci") else [f"--{KIND}"]))
        check("it says how to build", "cd a-project && cmake --workflow --preset debug" in said, said)
        project = FOLDER / "a-project"
        check_project(project)
        check_program(project / "build/debug/a-project")
        if KIND == "plain":
            check_replay(project)
        if KIND == "ci":
            check_ci(project)
        print(f"new: {KIND} works")
    except AssertionError as wrong:
        print(f"new: {wrong}")
        sys.exit(1)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
