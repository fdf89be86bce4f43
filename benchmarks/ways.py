"""What is measured: ways to do one thing, each run once a round, and the table of their medians."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.cpu import cpu_seconds


class WayFailed(Exception):
    """A rival didn't do the work, which is a result as well."""


def nothing() -> float:
    """For a way that others have measured."""
    raise WayFailed("it is measured elsewhere")


@dataclass
class Way:
    """One way to do it. `run` gives the seconds that it took; the first way of a `group` is what others are shares of.

    `of`: another way of the group that this one is also compared with.
    """

    group: str
    name: str
    run: Callable[[], float] = nothing
    of: str | None = None
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  #: of all processes, with what stood around the seconds
    failures: list[str] = field(default_factory=list)  #: how it failed, in the rounds in which it did

    @property
    def median(self) -> float:
        return median(self.seconds)

    def forget(self) -> None:
        """Drop what was measured: it was to warm up."""
        self.seconds.clear()
        self.cpu.clear()
        self.failures.clear()

    def to_json(self, rows: int) -> dict[str, object]:
        return {
            "group": self.group,
            "way": self.name,
            "rows": rows,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "failures": self.failures,
        }


def measure(ways: Sequence[Way], rounds: int, say: Callable[[str], None], daemons: Iterable[int] = ()) -> None:
    """Run every way once a round, by turns. `daemons`: pids of servers that are no children of this process."""
    daemons = tuple(daemons)
    for number in range(rounds):
        say(f"round {number + 1} of {rounds} …")
        for way in ways:
            before = cpu_seconds(daemons)
            try:
                seconds = way.run()
            except WayFailed as error:
                way.failures.append(str(error))
                say(f"{way.name} failed: {error}")
                continue
            way.seconds.append(seconds)
            way.cpu.append(cpu_seconds(daemons) - before)


def show(ways: list[Way], rows: int, what: str, as_json: bool) -> None:
    """Print what was measured; `what`: of which `rows` there were."""
    if as_json:
        print(json.dumps([way.to_json(rows) for way in ways]))
    else:
        Console(width=max(Console().width, 110)).print(medians(ways, rows, f"{what}, medians"))


def medians(ways: list[Way], rows: int, title: str) -> Table:
    """Rows a second of each way, and its speed as a share of its group's first one, and of the one that it names."""
    table = Table(title=title, title_justify="left")
    for column in ("what", "way", "s", "min-max", "CPU s", "k rows/s", "of the first", "of"):
        table.add_column(column, justify="left" if column in ("what", "way", "of") else "right")
    for way in ways:
        if not way.seconds:
            table.add_row(way.group, way.name, "failed", *[""] * 6)
            continue
        group = [one for one in ways if one.group == way.group and one.seconds]
        spread = f"{min(way.seconds):.2f}-{max(way.seconds):.2f}"
        share = f"{group[0].median / way.median:.0%}"
        other = next((f"{one.median / way.median:.0%} of {one.name}" for one in group if one.name == way.of), "")
        speed = f"{rows / way.median / 1000:.0f}"
        cpu = f"{median(way.cpu):.2f}" if way.cpu else ""
        table.add_row(way.group, way.name, f"{way.median:.2f}", spread, cpu, speed, share, other)
    return table
