"""The driver behind ./bench."""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import build
import instructions
import report
from measure import measure
from programs import FLOOR, INSTRUCTIONS, PEERS, SOURCES, TROUPE, Contestant, NoSuchPeer, choose_peers
from rows import ROWS, Case, NoSuchRow, Row, Run, by_run, select


def variants(row: Row) -> str:
    return " ".join(f"@{workers}" for workers in row.workers) if len(row.workers) > 1 else ""


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    rows = "\n".join(f"  {row.name:<28}{variants(row):<9}{row.unit:<18}{row.question}" for row in ROWS)
    peers = "\n".join(f"  {peer.name:<10}{peer.title}" for peer in PEERS)
    parser = argparse.ArgumentParser(
        prog="./bench", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures troupe beside its rivals and a hand-written floor, in turn on this machine.",
        epilog=f"rows:\n{rows}\n\npeers:\n{peers}\n\n@1: one worker, the process pinned to CPU 0; @2: two workers, "
               "unpinned.\nA cell is the median and, in brackets, the least and the greatest of all repeats.\n"
               "What a program does and how to add a row: benches/README.md")
    parser.add_argument("--rows", metavar="GLOB", action="append", default=[],
                        help="only rows whose name matches, with or without @workers; may be given again")
    parser.add_argument("--peers", metavar="LIST|none", help="only these rivals, separated by commas (default: all)")
    parser.add_argument("--repeat", metavar="N", type=int, default=5, help="runs of each program (default: 5)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    parser.add_argument("--setup", action="store_true", help="install the rivals' Debian packages and end")
    parser.add_argument("--instructions", action="store_true",
                        help="count the instructions of one operation of each kind by callgrind, beside the kept counts, and end")
    parser.add_argument("--keep", action="store_true", help="with --instructions: write the counts to benches/instructions.txt")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error(f"--repeat wants a whole number from 1, not {options.repeat}")
    if options.keep and not options.instructions:
        parser.error("--keep goes with --instructions")
    if options.json and not is_writable(options.json.absolute()):
        parser.error(f"--json: cannot write to {options.json}")
    try:
        options.cases = select(options.rows)
        options.contestants = choose_peers(options.peers)
    except (NoSuchRow, NoSuchPeer) as error:
        parser.error(str(error))
    return options


def is_writable(path: Path) -> bool:
    """Asked before an hour of measuring, not after."""
    return os.access(path, os.W_OK) and not path.is_dir() if path.exists() else os.access(path.parent, os.W_OK)


def answerers(contestants: list[Contestant], run: Run, only_ours: bool) -> list[Contestant]:
    return [contestant for contestant in contestants
            if run.program in contestant.programs and run.bench not in contestant.lacks
            and (contestant is TROUPE or not only_ours)]


def prepare(peers: list[Contestant], runs: dict[Run, list[Case]]) -> tuple[list[Contestant], list[str]]:
    """Builds what the runs need; who takes part, and what failed. Only our own program is indispensable."""
    ready, failures = [], []
    for contestant in [TROUPE, FLOOR, *peers]:
        if not build.is_installed(contestant):
            print(build.hint(contestant))
            continue
        if contestant is TROUPE and not (SOURCES / "CMakeLists.txt").exists():
            print("troupe has no benchmark program (benches/CMakeLists.txt) and stays out")
            continue
        needed = [contestant.programs[run.program] for run, cases in runs.items()
                  if answerers([contestant], run, cases[0].row.only_ours)]
        try:
            for program in {program.product: program for program in needed}.values():
                build.build(contestant, program)
            ready.append(contestant)
        except build.BuildFailed as failure:
            if contestant is TROUPE:
                sys.exit(str(failure))
            failures.append(str(failure))
            print(f"{contestant.name} cannot be built and stays out; the reason stands at the end")
    return ready, failures


def notes(run: Run, peers: list[Contestant]) -> list[str]:
    smaller = [f"{peer.name}: {peer.sizes[run.bench][0]:,} of them, for {peer.sizes[run.bench][1]}"
               for peer in peers if run.bench in peer.sizes]
    return smaller + [f"{peer.name}: not here, {peer.lacks[run.bench]}" for peer in peers if run.bench in peer.lacks]


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def machine() -> str:
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [text.split(":", 1)[1].strip() for text in info.splitlines() if text.startswith("model name")]
    return f"{os.cpu_count()} CPUs ({models[0] if models else platform.machine()}), Linux {platform.release()}"


def commit() -> str:
    """The commit that is measured and its day; changes that are in no commit are named."""
    def said(*words: str) -> str:
        return subprocess.run(["git", "-C", SOURCES, *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = ", with changes" if said("status", "--porcelain", "--untracked-files=no") else ""
    return said("log", "-1", "--format=%h (%cs)") + changed or "unknown"


def write_figures(path: Path, lines: list[report.Line]) -> None:
    figures = {"machine": machine(), "commit": commit(), "rows": report.as_json(lines)}
    try:
        path.write_text(json.dumps(figures, indent=1) + "\n")
    except OSError as error:
        sys.exit(f"./bench: --json: cannot write to {path}: {error.strerror}; the rows above are complete")


def count_instructions(keep: bool) -> int:
    try:
        build.build(TROUPE, INSTRUCTIONS)
        return instructions.show(str(INSTRUCTIONS.product), keep)
    except (build.BuildFailed, instructions.Failed) as failure:
        sys.exit(str(failure))


def main() -> int:
    options = parse_arguments(sys.argv[1:])
    if options.setup:
        return build.install(options.contestants)
    if options.instructions:
        return count_instructions(options.keep)
    runs = by_run(options.cases)
    ready, failures = prepare(options.contestants, runs)
    peers = [contestant for contestant in ready if contestant not in (TROUPE, FLOOR)]
    names = [peer.name for peer in peers]
    print(f"{machine()}; runs of each, in turn: {options.repeat}; median (min–max)")
    print(report.header(names), flush=True)
    lines: list[report.Line] = []
    for run, cases in runs.items():
        only_ours = cases[0].row.only_ours
        asked = answerers(ready, run, only_ours)
        samples = measure(run, [case.row for case in cases], asked, options.repeat, show_progress)
        show_progress("")
        failures += [f"{cases[0].name}: {failure}" for failure in samples.failures]
        for case in cases:
            line = report.make_line(case, samples)
            if case is cases[0] and not only_ours:
                line.notes += notes(run, peers)
            lines.append(line)
            print(report.table_line(line, names), flush=True)
        if options.json:
            write_figures(options.json, lines)
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; the rows above are complete")
