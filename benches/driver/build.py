"""build: finds out who is installed, and builds programs that are out of date."""

import os
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

from programs import BUILT, Contestant, Program


class BuildFailed(Exception):
    pass


def is_installed(contestant: Contestant) -> bool:
    return all(glob(need) if need.startswith("/") else shutil.which(need) for need in contestant.needs)


def install_command(contestants: list[Contestant]) -> list[str]:
    packages = sorted({package for contestant in contestants for package in contestant.packages})
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    return [*as_root, "apt-get", "install", "-y", "--no-install-recommends", *packages]


def install(contestants: list[Contestant]) -> int:
    """Installs what the contestants need; the exit status."""
    if not contestants:
        return 0
    command = install_command(contestants)
    print("+", *command, flush=True)
    return subprocess.run(command).returncode


def hint(contestant: Contestant) -> str:
    return f"{contestant.name} is not installed and stays out; to have it: ./bench --setup --peers {contestant.name}"


def newest_source(program: Program) -> float:
    files = [path for path in program.folder.rglob("*") if path.is_file()]
    return max(path.stat().st_mtime for path in (*files, *program.also_watch))


def recipe(program: Program) -> str:
    """The commands as text, kept beside the product: other flags mean a new build too."""
    return "".join(" ".join(command) + "\n" for command in program.build)


def is_up_to_date(program: Program) -> bool:
    product, note = program.product, recipe_file(program)
    if program.knows_itself or not product.exists() or not note.exists():
        return False
    return note.read_text() == recipe(program) and note.stat().st_mtime > newest_source(program)


def recipe_file(program: Program) -> Path:
    return program.product.with_name(program.product.name + ".recipe")


def build(contestant: Contestant, program: Program) -> None:
    if is_up_to_date(program):
        return
    if sys.stderr.isatty():
        print(f"building {contestant.name}: {program.product.name} ...", file=sys.stderr)
    for folder in (BUILT, program.product.parent):  # the first is where the load generators go
        folder.mkdir(parents=True, exist_ok=True)
    for command in program.build:
        run_quietly(contestant, command, program)
    if not program.knows_itself:
        recipe_file(program).write_text(recipe(program))


def run_quietly(contestant: Contestant, command: tuple[str, ...], program: Program) -> None:
    environment = {**os.environ, **program.environment}
    try:
        done = subprocess.run(command, cwd=program.folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise BuildFailed(f"{contestant.name} cannot be built: there is no {command[0]}") from None
    if done.returncode != 0:
        raise BuildFailed(f"{contestant.name} cannot be built. In {program.folder}:\n  {' '.join(command)}\n"
                          + done.stdout)
