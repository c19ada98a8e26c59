"""Does what the guide's section on building says, line by line, and runs what comes out.

Usage: guide.py installed|sources|bare|hidden

  installed  the section's commands install the library; each block that uses an installation builds a program; with TROUPE_DEEP
             set, with g++ and clang; then the installed tree is moved, and they do so again
  sources    each block that builds the library with the program
  bare       as `installed`, for a system on which pkg-config finds neither liburing nor c-ares nor OpenSSL
  hidden     as `bare`, where the compiler finds none of their headers either (status 77 where that takes rights that we lack)

A block of the section is a ```sh one, which a shell runs, a ```cmake one, which becomes the end of a CMakeLists.txt, or a ```meson one. A kind of block
that this file does not know is a failure: then the guide says something that no test has tried.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import built

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
BINARY = pathlib.Path(os.environ["TROUPE_BINARY_DIR"])
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
COMPILER = os.environ["TROUPE_CXX"].split()[-1]
LAUNCHER = os.environ["TROUPE_CXX"].split()[:-1]
CLANG = "clang++-22"
SECTION = "Using it in your own build"
HIDDEN = re.compile(r"(liburing.*|libcares|openssl|libssl|libcrypto|zlib)\.pc")
SECONDS_MAX = 550
NOT_TRIED = 77
# Within a view of the files of its own: the headers' folders become empty.
HIDE_HEADERS = """
for folder in /usr/include/date /usr/include/openssl /usr/include/*/openssl /usr/include/liburing; do
  if [ -d "$folder" ]; then mount -t tmpfs none "$folder"; fi
done
for file in /usr/include/liburing.h /usr/include/ares.h; do
  if [ -e "$file" ]; then mount --bind /dev/null "$file"; fi
done
exec "$@"
"""


class Failed(Exception):
    pass


def blocks():
    """The section's blocks as (language, text)."""
    text = (SOURCE / "docs" / "guide" / "start.md").read_text()
    section = re.search(rf"^## {SECTION}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    if not section:
        raise Failed(f"docs/guide/start.md has no section '{SECTION}'")
    return re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", section.group(1), re.MULTILINE | re.DOTALL)


def kind_of(language, text):
    if language == "cmake" and "find_package(troupe" in text:
        return "package"
    if language == "cmake" and ("add_subdirectory(" in text or "FetchContent_" in text):
        return "sources"
    if language == "sh" and "cmake --install" in text:
        return "install"
    if language == "sh" and text.startswith("export "):
        return "environment"
    if language == "sh" and "pkg-config" in text:
        return "command"
    if language == "meson":
        return "meson"
    raise Failed(f"no test tries this block of the guide:\n{text}")


def run(command, where, environment):
    """Runs a command, or the text of a shell; returns what it said."""
    if isinstance(command, str):
        command = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run([str(word) for word in command], cwd=where, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise Failed(f"in {where}:\n{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


class Attempt:
    """Folders and an environment. Builds of the library take the objects that this build has already (built.py), but not where
    headers are hidden. They lie beside this build, where the compiler cache knows the others in each of its modes: by the full
    names of files, or by their names from the build folder."""

    def __init__(self, how):
        self.work = BINARY / "package_test" / f"guide_{how}"
        self.builds = BINARY.parent / f"{BINARY.name}-package-{how}"
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.builds, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.home = self.work / "home"
        self.home.mkdir()
        self.launcher = [*(built.prepare(self.work) if how != "hidden" else []), *LAUNCHER]
        self.environment = {**os.environ, "HOME": str(self.home), "CXX": COMPILER}
        if self.launcher:
            self.environment["CMAKE_CXX_COMPILER_LAUNCHER"] = ";".join(self.launcher)
        for name in ("CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "CXXFLAGS", "LDFLAGS"):
            self.environment.pop(name, None)
        if LAUNCHER and "CCACHE_DIR" not in os.environ and shutil.which("ccache"):
            # The home is another one.
            for option, name in (("cache_dir", "CCACHE_DIR"), ("base_dir", "CCACHE_BASEDIR")):
                self.environment[name] = subprocess.check_output(["ccache", "--get-config", option], text=True).strip()
            if subprocess.check_output(["ccache", "--get-config", "hash_dir"], text=True).strip() == "false":
                self.environment["CCACHE_NOHASHDIR"] = "1"

    def hide(self):
        """pkg-config sees all modules of the system but those."""
        seen = self.work / "pkgconfig"
        seen.mkdir()
        folders = subprocess.check_output(["pkg-config", "--variable", "pc_path", "pkg-config"], text=True).strip().split(":")
        for folder in map(pathlib.Path, folders):
            for file in sorted(folder.glob("*.pc")):
                if not HIDDEN.fullmatch(file.name) and not (seen / file.name).exists():
                    (seen / file.name).symlink_to(file)
        self.environment["PKG_CONFIG_LIBDIR"] = str(seen)

    def install(self, text):
        run(text.replace("build/install", f"'{self.builds}'"), SOURCE, self.environment)

    def export(self, text):
        """Takes what the shell exports over."""
        said = run(f"{text}\nenv -0", self.work, self.environment)
        self.environment = dict(line.split("=", 1) for line in said.split("\0") if "=" in line)

    def compile_by_command(self, text):
        if CLANG in text and not shutil.which(CLANG):
            print(f"package: partly skipped: needs {CLANG}")
            return
        folder = self.folder()
        shutil.copy(self.program_for(text), folder / "program.cpp")
        run(text.replace("-O2", "-O0"), folder, self.environment)
        self.check_output(folder / "program")

    def build_with_cmake(self, text, compiler, build, *options):
        folder = self.folder()
        shutil.copy(self.program_for(text), folder / "program.cpp")
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(program LANGUAGES CXX)\n"
                                               f"add_executable(program program.cpp)\n{text}")
        run(["cmake", "-S", folder, "-B", build or folder / "build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", *options],
            folder, self.environment)
        run(["cmake", "--build", build or folder / "build", "--target", "program"], folder, self.environment)
        self.check_output((build or folder / "build") / "program")

    def build_with_meson(self, text):
        if not shutil.which("meson"):
            print("package: partly skipped: needs meson")
            return
        folder = self.folder()
        shutil.copy(self.program_for(text), folder / "program.cpp")
        (folder / "meson.build").write_text(text)
        run(["meson", "setup", "build"], folder, self.environment)
        run(["ninja", "-C", "build"], folder, self.environment)
        self.check_output(folder / "build" / "program")

    def refuses(self, component, *needs):
        """A component that is not there is named, with what it needs."""
        try:
            self.build_with_cmake(f"find_package(troupe REQUIRED COMPONENTS {component})\n", COMPILER, None)
        except Failed as refused:
            said = " ".join(str(refused).split())
            for words in (f"'{component}'", *needs):
                if words not in said:
                    raise Failed(f"the refusal does not say {words}: {refused}") from refused
            return
        raise Failed("a component that is not there was found")

    def folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.work))

    @staticmethod
    def program_for(text):
        return PROGRAMS / ("http.cpp" if re.search(r"troupe(::|-)http", text) else "core.cpp")

    def check_output(self, program):
        said = run([program], self.work, self.environment)
        if said != "42\n":
            raise Failed(f"{program} printed {said!r}, not 42")


def use_installation(attempt, texts, compilers, core_only):
    for compiler in compilers:
        for text in texts["package"]:
            if not core_only or "http" not in text:
                attempt.build_with_cmake(text, compiler, None)
    for text in texts["command"]:
        if not core_only or "http" not in text:
            attempt.compile_by_command(text)
    for text in texts.get("meson", []):
        attempt.build_with_meson(text)


def try_installed(attempt, texts, bare, hidden):
    is_deep = bool(os.environ.get("TROUPE_DEEP"))
    compilers = [COMPILER] + [CLANG] * (is_deep and shutil.which(CLANG) is not None and COMPILER != CLANG)
    if bare:
        attempt.hide()
    for text in texts["install"]:
        attempt.install(text)
    for text in texts["environment"]:
        attempt.export(text)
    use_installation(attempt, texts, compilers[:1] if bare else compilers, bare)
    if bare:
        attempt.refuses("http", "openssl", "libssl-dev")
        if hidden:
            attempt.refuses("cron", "date-tz", "libhowardhinnant-date-dev")
        uses = run(["ninja", "-C", attempt.builds, "-t", "deps"], attempt.work, attempt.environment)
        if found := re.search(r"^ +\S*/(liburing\.h|ares\.h|openssl/ssl\.h)$", uses, re.MULTILINE):
            raise Failed(f"built without it, the library includes {found.group(1)}")
        return
    if not is_deep:
        return
    moved = attempt.work / "moved"
    (attempt.home / ".local").rename(moved)
    for name in ("CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH"):
        attempt.environment[name] = attempt.environment[name].replace(str(attempt.home / ".local"), str(moved))
    use_installation(attempt, texts, [], False)
    attempt.build_with_cmake(texts["package"][0], COMPILER, None)
    # A program of the core needs neither c-ares nor OpenSSL; with them hidden, http says what it
    # lacks.
    attempt.hide()
    seen = pathlib.Path(attempt.environment["PKG_CONFIG_LIBDIR"])
    pc_of_liburing = subprocess.run(["pkg-config", "--variable=pcfiledir", "liburing"], capture_output=True, text=True).stdout.strip()
    if pc_of_liburing:
        (seen / "liburing.pc").symlink_to(pathlib.Path(pc_of_liburing) / "liburing.pc")
    use_installation(attempt, {"package": texts["package"][:1], "command": texts["command"][:1]}, [COMPILER], True)
    attempt.refuses("http", "openssl", "libssl-dev")


def try_sources(attempt, texts):
    # As in our own build, which has made the same objects then. The sources' own names, and not those of a link to them.
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTROUPE_WERROR=ON"]
    for text in texts["sources"]:
        there = text.replace("add_subdirectory(troupe)", f'add_subdirectory("{SOURCE}" troupe)')
        there = there.replace("${CMAKE_CURRENT_SOURCE_DIR}/troupe", str(SOURCE))
        if there == text:
            raise Failed(f"this test does not know where this block expects the sources:\n{text}")
        attempt.build_with_cmake(there, COMPILER, attempt.builds, *options)
        if made := [str(p) for name in ("test_*", "example_*") for p in attempt.builds.rglob(name)]:
            raise Failed(f"a project that embeds troupe built {made}")
        shutil.rmtree(attempt.builds)


def main():
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    if how not in ("installed", "sources", "bare", "hidden"):
        print(__doc__, file=sys.stderr)
        return 2
    if how == "hidden" and sys.argv[2:] != ["within"]:
        if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode != 0:
            print("package: skipped: needs mount namespaces: this system does not let us hide its headers")
            return NOT_TRIED
        return subprocess.run(["unshare", "--mount", "bash", "-euc", HIDE_HEADERS, "bash", sys.executable, __file__, how, "within"]).returncode
    try:
        texts = {}
        for language, text in blocks():
            texts.setdefault(kind_of(language, text), []).append(text)
        for kind in ("install", "environment", "package", "command", "meson", "sources"):
            if kind not in texts:
                raise Failed(f"the guide's section '{SECTION}' has no block of the kind '{kind}'")
        attempt = Attempt(how)
        if how == "sources":
            try_sources(attempt, texts)
        else:
            try_installed(attempt, texts, how != "installed", how == "hidden")
    except Failed as problem:
        print(f"package: {problem}")
        return 1
    shutil.rmtree(attempt.work)
    shutil.rmtree(attempt.builds, ignore_errors=True)
    print(f"package: the guide's lines work ({how})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
