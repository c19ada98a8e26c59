"""report: from samples to the table and to JSON."""

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from measure import Samples
from rows import Case, Row

NAME_WIDTH, UNIT_WIDTH, RATIO_WIDTH = 30, 17, 24
CELL_WIDTH = 21

# Bare loops of ours, which the table names beside the floor. They are rivals of no contestant.
MORE_FLOORS = ("uring",)


@dataclass(frozen=True)
class Summary:
    median: float
    min: float
    max: float


@dataclass
class Line:
    """One line of the table: a case with the summaries of all contestants. `peers` has only those that answered."""

    case: Case
    troupe: Summary | None = None
    floor: Summary | None = None
    peers: dict[str, Summary] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def summarize(values: list[float]) -> Summary | None:
    return Summary(median(values), min(values), max(values)) if values else None


def make_line(case: Case, samples: Samples) -> Line:
    key = case.row.value
    all_of = {name: summarize([sample[key] for sample in own]) for name, own in samples.of.items()}
    peers = {name: summary for name, summary in all_of.items() if name not in ("troupe", "floor") and summary}
    line = Line(case, all_of.get("troupe"), all_of.get("floor"), peers)
    for extra in case.row.limits:
        medians = {name: median(sample.get(extra, 0) for sample in own) for name, own in samples.of.items() if own}
        line.notes.append(f"{extra}: " + ", ".join(f"{name} {value:.2f}" for name, value in medians.items()))
    return line


# ---- ratios ----------------------------------------------------------------------------------------


def words(row: Row) -> tuple[str, str]:
    """How to say that ours is better, and that it is worse."""
    if row.better == "more":
        return "more", "less"
    if row.unit.startswith(("ns", "us")):
        return "faster", "slower"
    return ("smaller", "larger") if row.unit.startswith("bytes") else ("less", "more")


def best_peer(line: Line) -> str | None:
    rivals = [name for name in line.peers if name not in MORE_FLOORS]
    if not rivals:
        return None
    pick = min if line.case.row.better == "less" else max
    return pick(rivals, key=lambda name: line.peers[name].median)


def versus_best(line: Line) -> str:
    """ "5.1x faster (go)": by how much ours beats the best rival, or is beaten by it."""
    best = best_peer(line)
    if best is None or line.troupe is None:
        return "-"
    ours, theirs = line.troupe.median, line.peers[best].median
    if ours <= 0 or theirs <= 0:
        return "-"
    gain = theirs / ours if line.case.row.better == "less" else ours / theirs
    better, worse = words(line.case.row)
    return f"{times(gain)} {better} ({best})" if gain >= 1 else f"{times(1 / gain)} {worse} ({best})"


def times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


def versus_floor(line: Line) -> str:
    if line.troupe is None or line.floor is None or line.floor.median <= 0:
        return "-"
    return f"{line.troupe.median / line.floor.median:.2f}x"


# ---- the table -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three significant digits, or all of the whole part."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def cell(summary: Summary | None) -> str:
    if summary is None:
        return "-"
    return f"{number(summary.median)} ({number(summary.min)}–{number(summary.max)})"


def join(name: str, unit: str, cells: list[str], ratio: str, floor_ratio: str) -> str:
    middle = "".join(f"{text:>{CELL_WIDTH}}" for text in cells)
    return f"{name:<{NAME_WIDTH}}{unit:<{UNIT_WIDTH}}{middle}{ratio:>{RATIO_WIDTH}}{floor_ratio:>12}".rstrip()


def header(peers: list[str]) -> str:
    return join("row", "unit", ["troupe", "floor", *peers], "ours to best rival", "ours/floor")


def table_line(line: Line, peers: list[str]) -> str:
    cells = [cell(line.troupe), cell(line.floor), *(cell(line.peers.get(name)) for name in peers)]
    text = join(line.case.name, line.case.row.unit, cells, versus_best(line), versus_floor(line))
    return "\n".join([text, *(f"    {note}" for note in line.notes)])


# ---- JSON ------------------------------------------------------------------------------------------


def as_json(lines: list[Line]) -> list[dict[str, Any]]:
    def optional(summary: Summary | None) -> dict[str, float] | None:
        return asdict(summary) if summary else None

    return [{"row": line.case.name, "unit": line.case.row.unit, "better": line.case.row.better,
             "troupe": optional(line.troupe), "floor": optional(line.floor),
             "peers": {name: asdict(summary) for name, summary in line.peers.items() if name not in MORE_FLOORS},
             "floors": {name: asdict(summary) for name, summary in line.peers.items() if name in MORE_FLOORS}}
            for line in lines]
