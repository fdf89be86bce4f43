"""What the demo prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stack.reconciliation import SHOWN_DIFFERENCES, Check

_RECONCILED = "Reconciliation: two counts a line, of what came out also the digests"
ENDS = 5  #: epochs shown at each end of a long table
QUIET_STEPS = 10  #: lines of progress where there is no terminal


@dataclass(frozen=True)
class EpochRow:
    """One line of the table. `seconds`: from the plan to the last sink's publication; `attempts`: begun ones."""

    epoch: int
    day: date
    state: str
    rows: Mapping[str, int]
    attempts: int
    seconds: float | None


@contextmanager
def progress(console: Console, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar on a terminal, a line now and then elsewhere. Gives the function that takes (done, what goes on)."""
    if not console.is_terminal:
        yield _lines(console, title, total)
        return
    counted = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*counted, TextColumn("[dim]{task.fields[doing]}"), console=console) as bar:
        task = bar.add_task(title, total=total, doing="")
        yield lambda done, doing: bar.update(task, completed=done, doing=doing)


def _lines(console: Console, title: str, total: int) -> Callable[[int, str], None]:
    step = max(total // QUIET_STEPS, 1)
    shown = -1

    def show(done: int, doing: str) -> None:
        nonlocal shown
        if done == shown or (done % step and done != total):
            return
        shown = done
        console.print(f"  {title}: {done} of {total}{f' ({doing})' if doing else ''}", highlight=False)

    return show


def show_epochs(console: Console, rows: Sequence[EpochRow]) -> None:
    """Every epoch, or the first and last ones of many, and the totals."""
    outputs = sorted({name for row in rows for name in row.rows})
    table = Table(title="Epochs", title_justify="left", show_footer=True, box=box.SIMPLE_HEAD)
    table.add_column("epoch", f"{len(rows)}", justify="right")
    table.add_column("day", "")
    table.add_column("state", "")
    for name in outputs:
        table.add_column(name, f"{sum(row.rows.get(name, 0) for row in rows):,}", justify="right")
    table.add_column("attempts", f"{sum(row.attempts for row in rows)}", justify="right")
    table.add_column("seconds", "", justify="right")
    for row in rows if len(rows) <= 3 * ENDS else rows[:ENDS]:
        table.add_row(*_cells(row, outputs))
    if len(rows) > 3 * ENDS:
        table.add_row("…")
        for row in rows[-ENDS:]:
            table.add_row(*_cells(row, outputs))
    console.print(table)


def _cells(row: EpochRow, outputs: Sequence[str]) -> list[str]:
    seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
    counts = [f"{row.rows.get(name, 0):,}" for name in outputs]
    return [str(row.epoch), row.day.isoformat(), row.state, *counts, str(row.attempts), seconds]


def show_checks(console: Console, checks: Sequence[Check], title: str = _RECONCILED) -> None:
    """One line a comparison, then what differs."""
    table = Table(title=title, title_justify="left", show_header=False, box=box.SIMPLE)
    for _ in range(6):
        table.add_column()
    table.columns[2].justify = table.columns[4].justify = "right"
    for check in checks:
        verdict = "[green]agrees[/]" if check.agrees else "[bold red]DIFFERS[/]"
        counts = (f"{check.one_count:,}", f"{check.other_count:,}")
        table.add_row(check.what, check.one, counts[0], check.other, counts[1], verdict)
    console.print(table)
    for check in checks:
        for difference in check.differing[:SHOWN_DIFFERENCES]:
            console.print(f"  [bold red]{check.what}[/]: {escape(difference)}")
        if (more := len(check.differing) - SHOWN_DIFFERENCES) > 0:
            console.print(f"  [bold red]{check.what}[/]: and {more} more")
