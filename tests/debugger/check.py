"""The commands of tools/gdb on a program of which it is known what each actor does.

Usage: check.py WHAT PROGRAM, with WHAT one of the functions `check_...` below."""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE_DIR = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
BINARY_DIR = pathlib.Path(os.environ["TROUPE_BINARY_DIR"])
SCRIPT = SOURCE_DIR / "tools" / "gdb" / "troupe_gdb.py"
SECONDS_MAX = 120
SKIPPED = 77
COMMANDS = ["info troupe actors", "info troupe waits", "troupe backtrace 3", "info troupe turn 4097",
            "info troupe mail 2", "troupe backtrace 4", "troupe backtrace 9"]


def fail(text):
    print(f"debugger: {text}")
    sys.exit(1)


def skip(text):
    print(f"debugger: skipped: {text}")
    sys.exit(SKIPPED)


def gdb(arguments, commands):
    """What GDB says to these commands, the script's text alone if all is well."""
    words = ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    for command in [f"source {SCRIPT}", "set width 0", "echo BEGIN\\n", *commands]:
        words += ["-ex", command]
    done = subprocess.run([*words, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS_MAX)
    said = done.stdout
    if "Traceback" in said or "Python Exception" in said or "Error occurred in Python" in said:
        fail(f"the script failed:\n{said}")
    if "Operation not permitted" in said:
        skip("needs ptrace: this machine does not let GDB attach to a process")
    return said.split("BEGIN\n", 1)[-1]


class Running:
    """The program, once it is ready."""

    def __init__(self, program, *arguments):
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            fail(f"{program} did not become ready")
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def expect(said, *patterns):
    for pattern in patterns:
        if not re.search(pattern, said, re.M):
            fail(f"does not say {pattern!a}:\n{said}")


# Each line is known but for addresses, and the numbers of lines in program.cpp.
AT = r"at (?:\S*/)?program\.cpp:\d+"
FRAME = r"frame 0x[0-9a-f]+"


def check_words(said):
    expect(said,
           rf"^#2 +Account +waits +6  in &Account::withdraw waits {AT} for sleep_for$",
           rf"^#3 +Bank +waits +0  in &Bank::transfer waits {AT} for the answer of &Account::withdraw \(#2 Account\)$",
           r"^#9 +Busy +runs +\d  in &Busy::work in thread \d+$",
           r"^#8193 +Counter +waits .*&Counter::count waits .*; in &Counter::count waits",
           rf"^#\d+ +Locked +waits +\d  in &Locked::pass waits {AT} for a lock held by &Locked::pass since program\.cpp:\d+ \(#[78] Locked\)$",
           rf"^#\d+ +a spawned task +waits +0  in order waits {AT} for the answer of &Bank::transfer \(#3 Bank\)$",
           r"^11 actors$", r"^  2 Account: 2 waits$",
           r"^11 suspended calls$",
           r"^a cycle: #4 Partner waits for #5 Partner waits for #4 Partner$",
           # the chain of one turn
           r"^#3 Bank in &Bank::transfer\n"
           rf"  #0    ?Bank::check \(\) {AT}, {FRAME}\n"
           rf"  #1    ?Bank::transfer \(\) {AT}, {FRAME}\n"
           r"  waits for the answer of &Account::withdraw \(#2 Account\)\n"
           r"  #2 Account in &Account::withdraw, asked by #3 Bank\n"
           rf"    #2    ?Account::audit \(\) {AT}, {FRAME}\n"
           rf"    #3    ?Account::audit \(\) {AT}, {FRAME}\n"
           rf"    #4    ?Account::audit \(\) {AT}, {FRAME}\n"
           rf"    #5    ?Account::withdraw \(\) {AT}, {FRAME}\n"
           r"    waits for sleep_for$",
           # branches
           r"^  waits for tasks that run side by side\n  branch 0:\n    #\d+ +Collector::one \(\)",
           r"^  branch 1:\n(?:.*\n)+?    #6 Account in &Account::withdraw, asked by #4097 Collector$",
           # mail, oldest first
           r"^0   &Account::deposit, at 0x[0-9a-f]+$", r"^5   &Account::withdraw, at", r"^#2 Account waits: 6 messages$",
           r"^    #4 Partner in &Partner::begin, which is told above: a cycle$",
           r"^#9 Busy runs now, in &Busy::work in thread \d+$")


def core_of(program, folder, *arguments):
    core = folder / "core"
    with Running(program, *arguments) as running:
        said = gdb(["-p", running.pid], [*COMMANDS, f"generate-core-file {core}"])
    if not core.exists():
        fail(f"no core file was made: {said}")
    return core, said


def check_live(program, folder):
    for policy in ("work_stealing", "shared_queue"):
        os.environ["TROUPE_POLICY"] = policy
        with Running(program) as running:
            check_words(gdb(["-p", running.pid], COMMANDS))


def check_core(program, folder):
    core, live = core_of(program, folder)
    said = gdb([program, core], COMMANDS)
    check_words(said)
    # Without a core's threads' order nothing else may differ.
    same = re.sub(r"(thread(?: apply)?) \d+", r"\1 N", said).strip()
    # A core file that is cut off somewhere.
    size = core.stat().st_size
    for part in (0.9, 0.5, 0.1):
        with open(core, "r+b") as file:
            file.truncate(int(size * part))
        said = gdb([program, core], COMMANDS)
        for text in said.splitlines():
            if "rror" in text and not text.startswith(("troupe: ", "warning: ", "BFD: ")):
                fail(f"of a core file of which {part} are left: {text}")
        expect(said, "troupe: |^actor ")
    if same not in re.sub(r"(thread(?: apply)?) \d+", r"\1 N", live):
        fail(f"the live process said:\n{live}\nand the core file:\n{said}")


def check_stripped(program, folder):
    core, _ = core_of(program, folder)
    stripped = folder / "stripped"
    subprocess.run(["strip", "-g", "-o", stripped, program], check=True)
    check_words(gdb([stripped, core], COMMANDS))
    check_without_symbols(program, core, stripped)


def check_without_symbols(program, core, stripped):
    # Without symbols functions have no names, but lines are known, and what waits for what.
    subprocess.run(["strip", "-o", stripped, program], check=True)
    said = gdb([stripped, core], COMMANDS)
    expect(said, rf"^#2 +Account +waits +6  in a handler at 0x[0-9a-f]+ waits {AT} for sleep_for$",
           rf"^#3 +Bank +waits +0  in a handler at \S+ waits {AT} for the answer of a handler at \S+ \(#2 Account\)$",
           rf"^    #5 .*withdraw.* {AT}, {FRAME}$",
           r"^a cycle: #4 Partner waits for #5 Partner", r"^11 suspended calls$")


def check_crash(program, folder):
    core = folder / "core"
    said = gdb(["--args", program, "crash"],
               ["run", *COMMANDS, f"generate-core-file {core}"])
    expect(said, "SIGABRT")
    check_words(said)
    said = gdb([program, core], COMMANDS)
    check_words(said)
    # The kernel's own core file, where it makes one.
    core.unlink()
    subprocess.run([pathlib.Path(program).resolve(), "crash"], cwd=folder, stdout=subprocess.DEVNULL,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    for made in folder.glob("core*"):
        check_words(gdb([program, made], COMMANDS))


def check_many(program, folder):
    with Running(program, "100000") as running:
        begun = time.monotonic()
        said = gdb(["-p", running.pid], ["info troupe actors", "info troupe waits"])
        took = time.monotonic() - begun
        expect(said, r"^and 99,911 more; `info troupe actors -n 0` lists all$", r"^100,011 actors$",
               r"^  100,000 Sleeper: 100,000 inactive$", r"^11 suspended calls$")
        if took > 60:
            fail(f"listing 100,000 actors took {took:.0f} s")
        said = gdb(["-p", running.pid], ["info troupe actors -n 3 Sleeper", "info troupe actors -n 5 Partner"])
        expect(said, r"^and 99,997 more", r"^100,000 actors$", r"^2 actors$")
        print(f"listed 100,000 actors and the waits in {took:.1f} s")


def lines_of(text):
    """{(the actor's number or null, where it waits, for what)} of the lines of a dump, or of the debugger's."""
    found = []
    for line in text.replace("{anonymous}::", "").replace("(anonymous namespace)::", "").splitlines():
        if read := re.fullmatch(r"\s*(.*?) waits at (\S+) for (.*)", line):
            what = re.sub(r"^a (shared )?lock.*", "a lock", read.group(3).removesuffix(", with a limit"))
            what = re.sub(r"(?<=I/O): .*", "", re.sub(r"(?<=\(#\d)(\d*) .*?\)", r"\1)", what))
            number = re.search(r"#(\d+)", read.group(1))
            found.append((number.group(1) if number else None, read.group(2), what))
        elif read := re.fullmatch(r"\s*(?:#(\d+) (\w+)|(\w+) #(\d+)): (.*) waits for its predicate", line):
            found.append((read.group(1) or read.group(4), read.group(2) or read.group(3), read.group(5)))
    return sorted(found, key=str)


def check_kinds(program, folder):
    """What waits for whatever kind of thing is told as the program tells it itself."""
    for policy in ("work_stealing", "shared_queue"):
        process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env={**os.environ, "TROUPE_POLICY": policy})
        try:
            dump = ""
            while not dump.endswith("ready\n"):
                line = process.stdout.readline()
                if not line:
                    fail(f"{program} ended: {dump}")
                dump += line
            said = gdb(["-p", process.pid], ["info troupe waits -n 0"])
        finally:
            process.kill()
            process.wait()
        theirs, ours = lines_of(dump), lines_of(said)
        if theirs != ours or len(ours) != 22:
            fail(f"{policy}: the program says:\n{dump}\nand the debugger:\n{said}\n"
                 f"only the program: {[x for x in theirs if x not in ours]}\nonly the debugger: {[x for x in ours if x not in theirs]}")
        expect(said, "waits at .* for a lock held by locks since kinds.cpp", "waits at .* for I/O: read of descriptor \\d+$",
               "waits at .* for a shared lock held by locks_all since kinds.cpp", "^22 suspended calls$")


def check_told_turns(said, crashed):
    source = (SOURCE_DIR / "tests" / "debugger" / "recorded.cpp").read_text(encoding="utf-8").splitlines()

    def line(words):
        return next(number for number, text in enumerate(source, 1) if words in text)

    # Newest first. An optimised handler has the line of its body.
    number, thread, before = r"#\d+", r"\S+(?: \d)?", r" +\d+\.\d{3}[~ ] +"
    place = r"(?: \(recorded\.cpp:\d+\))"
    expect(said, rf"{number} &Account::read{place}\n(?:.*\n)*?{before}{thread} +  #\d+ waits at recorded\.cpp:{line('line of the last wait')}\n"
                 rf"(?:.*\n)*?{before}{thread} +{number} &Bank::audit{place}\n(?:.*\n)*?"
                 rf".*{number} &Account::withdraw{place}\n(?:.*\n)+?.*{number} &Account::deposit{place}\n",
           rf"{number} &Account::withdraw \(recorded\.cpp:{line('void withdraw')}\)$", r"timer$")
    if crashed:
        expect(said, rf"^ +{thread} +runs {number} &Account::crash \(recorded\.cpp:{line('void crash')}\)$")


def check_turns(program, folder):
    """The last turns, live, of a core file, and as the program itself writes them at its crash."""
    all_turns = "info troupe turns -n 0"
    core = folder / "core"
    with Running(program) as running:
        live = gdb(["-p", running.pid], [all_turns, "info troupe turns -n 1", "info troupe turns withdraw",
                                         f"generate-core-file {core}"])
    check_told_turns(live, False)
    expect(live, "^older ones: `info troupe turns -n 0` lists all$")
    if live.count("&Account::withdraw") != 2:
        fail(f"a pattern chooses nothing:\n{live}")
    of_core = gdb([program, core], [all_turns])
    check_told_turns(of_core, False)
    if of_core.strip() not in live:
        fail(f"the live process said:\n{live}\nand the core file:\n{of_core}")
    # A crash: under GDB, and alone, with the kernel's own core file where it makes one.
    said = gdb(["--args", program, "crash"], ["run", all_turns])
    check_told_turns(said, True)
    core.unlink()
    alone = subprocess.run([pathlib.Path(program).resolve(), "crash"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    expect(alone.stderr, r"^troupe: the last turns, newest first\n.*\n +\S.* runs #2 &\S*Account::crash\n"
                         r"(?:.*\n)*.* #2 &\S*Account::read\n(?:.*\n)*.* &\S*Bank::audit\n(?:.*\n)*"
                         r".* #2 &\S*Account::withdraw\n(?:.*\n)*.* #2 &\S*Account::deposit\n")
    if alone.returncode != -11:
        fail(f"the crash ended with {alone.returncode}")
    for made in folder.glob("core*"):
        check_told_turns(gdb([program, made], [all_turns]), True)
    # The oldest turns are gone, and the newest ones are there.
    with Running(program, "many") as running:
        said = gdb(["-p", running.pid], [all_turns])
    counted = said.count("&Counter::count")
    if not 1000 < counted < 3 * 8192:
        fail(f"a ring of 8,192 records has {counted} turns of one handler")
    stripped = folder / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    with Running(stripped) as running:
        expect(gdb(["-p", running.pid], [all_turns]), r"#2 &Account::withdraw$")


def check_damage(program, folder):
    with Running(program) as running:
        said = gdb(["-p", running.pid], [f"source {SOURCE_DIR / 'tests' / 'debugger' / 'damage.py'}"])
    expect(said, r"^damaged \d{3,} times$")
    print(re.search(r"^damaged.*(?:\n.*)?", said, re.M).group())


def check_printers(program, folder):
    with Running(program) as running:
        said = gdb(["-p", running.pid], [
            "python\nfor t in gdb.selected_inferior().threads():\n  t.switch()\n"
            "  if 'stop_here' in gdb.execute('backtrace', to_string=True): break\n",
            "frame function Busy::stop_here", "set print pretty off",
            "print to", "print answer", "print none", "print soon", "print kept", "print never", "print this->account",
            "print $troupe_object(2).balance", "print $troupe_object(to)", "print *(troupe::actor::cell*)to.address_.bits_",
            "troupe backtrace to", "info args"])
    expect(said, r"^\$\d+ = ref to #2 Account \(waits, 6 messages\)$",
           r"^\$\d+ = future, pending: the answer of &Account::withdraw \(#2 Account\)",
           r"^\$\d+ = future without a result", r"^\$\d+ = future, ready = \{result = .*\b5\b.*\}$",
           r"^\$\d+ = promise, pending, and nobody can receive it$",
           r"^\$\d+ = task Account::audit, not started, frame 0x[0-9a-f]+$",
           r"^\$\d+ = 40$", r"^\$\d+ = \{balance = 40\}$",
           r"= #2 Account \(waits, 6 messages\) = \{\[0\] = \"?&Account::deposit\"?",
           r"^#2 Account in &Account::withdraw, asked by #3 Bank$", r"^to = ref to #2 Account")


def check_elsewhere(program, folder):
    """What is not a running program of troupe is told in plain words."""
    expect(gdb([program], ["info troupe actors"]), "^troupe: the program does not run, and there is no core file$")
    sleeps = subprocess.Popen(["sleep", "100"])
    try:
        expect(gdb(["-p", sleeps.pid], ["info troupe waits"]), "^troupe: this program does not use troupe")
    finally:
        sleeps.kill()
        sleeps.wait()
    expect(gdb(["--args", program], ["starti", "info troupe actors", "info troupe waits"]),
           "^troupe: the program has not begun yet: there is no runtime at this moment$")
    expect(gdb(["--args", program], ["break main", "run", "info troupe actors", "info troupe waits"]),
           "^troupe: there is no runtime at this moment$", "^0 suspended calls$")
    with Running(program) as running:
        said = gdb(["-p", running.pid], ["troupe backtrace", "troupe backtrace 99", "troupe backtrace nothing", "info troupe actors -x",
                                         "info troupe actors -n", "info troupe actors (", "troupe backtrace 0x1234", "info troupe mail",
                                         "print $troupe_object(99)", "troupe backtrace 1"])
        expect(said, "^Usage: troupe backtrace ACTOR$", "^troupe: there is no actor 99$", "^troupe: nothing: No symbol",
               r"^Usage: info troupe actors \[-n COUNT\] \[CLASS\]$", r"^troupe: \( is no pattern", "^troupe: there is no actor at 0x1234$",
               r"^Usage: info troupe mail \[-n COUNT\] ACTOR$", "^#1 troupe::main_thread::proxy is inactive: it has no mail$")


def check_other_compiler(source, folder):
    compiler = "g++" if "clang" in os.environ["TROUPE_CXX"] else "clang++-22"
    if shutil.which(compiler) is None:
        skip(f"needs {compiler}")
    program = folder / "program"
    subprocess.run([compiler, f"@{BINARY_DIR}/use/compile.rsp", "-O2", "-g", source, f"@{BINARY_DIR}/use/link.rsp", "-o", program],
                   check=True, timeout=SECONDS_MAX)
    core, live = core_of(program, folder)
    check_words(live)
    check_words(gdb([program, core], COMMANDS))
    check_without_symbols(program, core, folder / "stripped")


def main():
    if shutil.which("gdb") is None:
        skip("needs gdb")
    if "works" not in gdb([], ["python print('works')"]):
        skip("needs a gdb with Python")
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + sys.argv[1]](sys.argv[2], pathlib.Path(folder))


main()
