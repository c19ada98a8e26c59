"""measure: runs programs in turn and believes only what their checks prove."""

import math
import re
import subprocess
from dataclasses import dataclass, field
from typing import Callable

from programs import Command, Contestant
from rows import Row, Run

TIMEOUT_SECONDS = 300

Sample = dict[str, float]  # the pairs of one line


class Refused(Exception):
    """A program failed, or its line is not to be believed."""


@dataclass
class Samples:
    of: dict[str, list[Sample]] = field(default_factory=dict)  # by contestant
    failures: list[str] = field(default_factory=list)


def command_line(contestant: Contestant, run: Run) -> Command:
    size, _ = contestant.sizes.get(run.bench, (run.size, ""))
    command = contestant.programs[run.program].start(run.workers)
    pinned = ("taskset", "-c", "0") if run.workers == 1 else ()
    return (*pinned, *command, run.bench, str(run.workers), str(size))


def parse(line: str) -> Sample:
    """The pairs of "value=1.5 check=7"; Refused unless these two are there and all are numbers from 0."""
    pairs = dict(re.findall(r"(\w+)=(\S+)", line))
    if "value" not in pairs or "check" not in pairs:
        raise Refused(f"printed no value= and check=, but: {line.strip()[:200] or 'nothing'}")
    try:
        sample = {key: int(text) if key == "check" else float(text) for key, text in pairs.items()}
    except ValueError as error:
        raise Refused(f"printed what is not a number: {error}") from None
    for key, number in sample.items():
        if not 0 <= number < math.inf:
            raise Refused(f"printed {key}={pairs[key]}")
    return sample


def verify(sample: Sample, row: Row, size: int) -> None:
    expected = row.check(size)
    if sample["check"] != expected:
        raise Refused(f"did not do its work: check is {sample['check']}, not {expected}")
    if row.value not in sample:
        raise Refused(f"printed no {row.value}=")


def over_limit(sample: Sample, row: Row) -> list[str]:
    """What of our own sample breaks the row's limits; a key that is not printed breaks its limit too."""
    return [f"{key} is {sample.get(key, 'not printed')}, over {limit}"
            for key, limit in row.limits.items() if not sample.get(key, math.inf) <= limit]


def run_once(command: Command) -> str:
    try:
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Refused(f"did not end within {TIMEOUT_SECONDS} s") from None
    except OSError as error:
        raise Refused(f"could not be started: {error}") from None
    if done.returncode != 0:
        raise Refused(f"ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def measure(run: Run, rows: list[Row], contestants: list[Contestant], repeat: int,
            progress: Callable[[str], None], execute: Callable[[Command], str] = run_once) -> Samples:
    """Runs A B A B ..., so that a slow moment of the machine falls on all alike. Who fails is not asked
    again, and none of its samples count."""
    samples = Samples({contestant.name: [] for contestant in contestants})
    for turn in range(repeat):
        for contestant in contestants:
            if contestant.name not in samples.of:
                continue
            progress(f"{run.bench}@{run.workers}: {contestant.name}, {turn + 1} of {repeat}")
            command = command_line(contestant, run)
            reproduce = f"  {' '.join(command)}"
            try:
                sample = parse(execute(command))
                for row in rows:
                    verify(sample, row, int(command[-1]))
            except Refused as reason:
                samples.failures.append(f"{contestant.name} {reason}\n{reproduce}")
                del samples.of[contestant.name]
                continue
            if contestant.name == "troupe":
                samples.failures += [f"troupe: {broken}\n{reproduce}" for broken in over_limit(sample, rows[0])]
            samples.of[contestant.name].append(sample)
    return samples
