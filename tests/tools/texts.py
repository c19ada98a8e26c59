"""The manual page and the completions of `troupe` know all of its commands and options, and no others."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOOL, PROGRAM = map(os.path.abspath, sys.argv[1:3])
SECONDS_MAX = 60
TEXTS = pathlib.Path(TOOL).parent / "texts"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_texts"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER), "PATH": f"{pathlib.Path(TOOL).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError(f"{what}:\n{seen}")


def run(*arguments, **more):
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=ENVIRONMENT, **more)


def help_of(*words):
    done = run(TOOL, *words, "--help")
    check(f"the help of {words}", done.returncode == 0, done)
    return done.stdout


def commands(text):
    """The names in a help's list of subcommands."""
    return re.findall(r"^  ([a-z-]+) ", text[text.index("Subcommands:"):].split("\n\n")[0], re.M) if "Subcommands:" in text else []


def options(text):
    return sorted(set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text[text.index("Options:"):].split("\n\n")[0])))


def check_manual():
    made = run(TOOL, "help", "--man").stdout
    check("the page that is installed", (TEXTS / "troupe.1").read_text() == made, made)
    if not shutil.which("groff"):
        print("texts: partly skipped: needs groff: the manual page was not formatted")
        return
    page = run("groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=200n", input=made)
    check("groff finds no fault", page.returncode == 0 and not page.stderr, page.stderr)
    for command in commands(help_of()):
        check(f"the help of {command} is of that command alone", "Environment:" not in help_of(command), help_of(command))
        check(f"the page has {command}", re.search(rf"^ +troupe {command}\b", page.stdout, re.M), page.stdout)
        for option in options(help_of(command)):
            check(f"the page has {command} {option}", option == "--help" or option in page.stdout, page.stdout)
        if command == "store":
            for part in commands(help_of("store", "x")):
                check(f"the page has store {part}", re.search(rf"^ +troupe store DATABASE {part}\b|^ +troupe store.* {part}\b", page.stdout, re.M), page.stdout)
    for section in "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "KEYS OF TOP", "ENVIRONMENT", "FILES", "EXIT STATUS":
        check(section, re.search(rf"^{section}$", page.stdout, re.M), page.stdout)


def bash(*words):
    """What bash offers for the last of the words."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _troupe 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    done = run("bash", "-c", script, "bash", TEXTS / "troupe", *words)
    check("bash has no fault", not done.stderr, done.stderr)
    return sorted(done.stdout.split())


def check_bash(pid):
    check("the script that is installed", (TEXTS / "troupe").read_text() == run(TOOL, "completion", "bash").stdout, TEXTS)
    known = commands(help_of())
    check("all commands", set(known) < set(bash("troupe", "")), bash("troupe", ""))
    for words, expected in ((["to"], ["top"]), (["top", "1", "--sort", "b"], ["busy"]), (["top", str(pid)], [str(pid)]), (["top", "--sort", "busy", str(pid)], [str(pid)]),
                            (["log", str(pid), "de"], ["debug"]), (["log", str(pid), "debug", ""], []), (["help", "du"], ["dump"]),
                            (["store", "a.db", "sh"], ["show"]), (["store", "a.db", "dead-letters", "--a"], ["--again"]),
                            (["completion", ""], ["bash", "zsh"]), (["trace", str(pid), ""], [])):
        check(f"bash completes {words}", bash("troupe", *words) == expected, bash("troupe", *words))
    for command in known:
        found = [one for one in bash("troupe", command, "--") if one.startswith("--")]
        check(f"the options of {command}", found == options(help_of(command)), (found, options(help_of(command))))


def check_zsh(pid):
    check("the function that is installed", (TEXTS / "_troupe").read_text() == run(TOOL, "completion", "zsh").stdout, TEXTS)
    if not shutil.which("zsh"):
        print("texts: partly skipped: needs zsh: nothing was completed in zsh")
        return
    if not shutil.which("tmux"):
        print("texts: partly skipped: needs tmux: nothing was completed in zsh")
        return
    tmux = ["tmux", "-S", str(FOLDER / "tmux"), "-f", "/dev/null"]
    run(*tmux, "new-session", "-d", "-s", "t", "-x", "150", "-y", "50", "TERM=xterm-256color zsh -f")
    try:
        def wait_for(what, holds):
            deadline = time.monotonic() + SECONDS_MAX
            while not holds(seen := run(*tmux, "capture-pane", "-p", "-t", "t").stdout):
                check(f"zsh completes {what}", time.monotonic() < deadline, seen)
                time.sleep(0.05)  # sleeps: a terminal tells nobody when it has drawn

        def send(*keys):
            run(*tmux, "send-keys", "-t", "t", *keys)

        send(f"PS1='> '; fpath=({TEXTS} $fpath); autoload -U compinit; compinit -u -D; clear", "Enter")
        wait_for("begins", lambda seen: seen.rstrip() == ">")
        for typed, expected in (("troupe du", "troupe dump"), ("troupe top --sort bu", "troupe top --sort busy"), (f"troupe top {str(pid)[:-1]}", f"troupe top {pid}"),
                                (f"troupe log {pid} deb", f"troupe log {pid} debug"), ("troupe store a.db dead-", "troupe store a.db dead-letters"),
                                ("troupe store a.db dead-letters --ag", "troupe store a.db dead-letters --again"), ("troupe help met", "troupe help metrics"),
                                ("troupe completion z", "troupe completion zsh"), ("troupe --vers", "troupe --version")):
            send("-l", typed)
            send("Tab")
            wait_for(typed, lambda seen: seen.rstrip().splitlines()[-1:] == [f"> {expected}"])
            send("C-u")
            wait_for("nothing more", lambda seen: seen.rstrip().endswith(">"))
    finally:
        run(*tmux, "kill-server")


def main():
    program = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**ENVIRONMENT, "TROUPE_OBSERVE": "1"})
    try:
        check("the program begins", program.stdout.readline() == "ready\n")
        check_manual()
        check_bash(program.pid)
        check_zsh(program.pid)
        print("texts: all commands are known")
    except AssertionError as wrong:
        print(f"texts: {wrong}")
        sys.exit(1)
    finally:
        program.stdin.close()
        program.wait(timeout=SECONDS_MAX)
        shutil.rmtree(FOLDER, ignore_errors=True)


main()
