"""The command line's tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lockstep.epoch import Json
from lockstep.ledger.report import EpochStatus, HistoryEntry, PipelineStatus
from lockstep.ledger.settings import Override
from lockstep.roles.recover import RecoveryReport
from lockstep.roles.renumber import Renumbering
from lockstep.roles.verify import Verification
from lockstep.sources.tables.source import HELD_BY
from lockstep.states import DECIDED, EpochState


def _out() -> Console:
    """As wide as the terminal is now."""
    return Console()


def show_epochs(pipelines: Sequence[PipelineStatus]) -> None:
    """`lockstep status`: a table a pipeline, then what is stuck."""
    if not pipelines:
        _out().print("no pipeline has run yet")
    for found in pipelines:
        counts = ", ".join(f"{n} {state}" for state, n in found.counts.items())
        table = Table(title=f"{found.name} ({found.identity}): {counts or 'no epochs'}", title_justify="left")
        for column in ("epoch", "interval", "state", "attempt", "age", "rows", "sinks"):
            table.add_column(
                column, overflow="fold", justify="right" if column in ("epoch", "attempt", "age", "rows") else "left"
            )
        for one in found.epochs:
            table.add_row(*_epoch_row(one))
        _out().print(table)
        if found.forgotten:
            _say(f"[bold]forgotten[/] {escape(found.forgotten)}")
        for hole in found.holes:
            _say(f"hole: no epoch for {hole}")
        for source, holder in _holders(found):
            _say(f"[bold yellow]held back[/]: when source {source} was last planned, rows waited for {escape(holder)}")
        for one in found.epochs:
            if one.stuck:
                _say(f"[bold red]stuck[/]: epoch {one.epoch.id} ({one.epoch.state}): {escape(one.stuck)}")
            for path in one.late:
                _say(f"[bold red]late[/]: epoch {one.epoch.id} was decided without {escape(path)}")
            for changed in one.changed:
                _say(f"[bold red]changed[/]: after epoch {one.epoch.id} had read it: {escape(str(changed))}")


def _holders(found: PipelineStatus) -> list[tuple[str, str]]:
    """Source and who kept its rows from the newest epoch."""
    newest = max((one.epoch for one in found.epochs), key=lambda epoch: epoch.id, default=None)
    ends = {name: planned.end for name, planned in newest.plan.sources.items()} if newest else {}
    return [(name, end[HELD_BY]) for name, end in ends.items() if isinstance(end, dict) and HELD_BY in end]


def show_history(entries: Sequence[HistoryEntry]) -> None:
    """`lockstep status --epoch`: every transition."""
    table = Table()
    for column in ("at", "who", "from", "to", "attempt", "token", "role", "actor", "reason"):
        table.add_column(column, overflow="fold")
    for one in entries:
        numbers = ["" if n is None else str(n) for n in (one.attempt, one.token)]
        at = one.at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        row = (at, one.sink or "epoch", one.source or "", one.target, *numbers, one.role, one.actor, one.reason or "")
        table.add_row(*map(escape, row))
    _out().print(table)


def show_verifications(found: Sequence[Verification]) -> None:
    """`lockstep verify`: one line an output and sink."""
    table = Table()
    for column in ("epoch", "sink", "output", "rows sealed", "rows shown", "digest", ""):
        table.add_column(
            column, overflow="fold", justify="right" if column in ("epoch", "rows sealed", "rows shown") else "left"
        )
    for one in found:
        verdict = f"[bold red]{escape(one.problem)}[/]" if one.problem else escape(one.note or "") or "[green]agrees[/]"
        shown = "" if one.rows_shown is None else f"{one.rows_shown:,}"
        table.add_row(
            str(one.epoch), one.sink, one.output, f"{one.rows_sealed:,}", shown, one.digest_sealed[:12], verdict
        )
    _out().print(table)
    differing = sum(not one.agrees for one in found)
    compared = len(found) - (unread := sum(one.agrees and not one.compared for one in found))
    beside = f"; {unread} can't be read back" if unread else ""
    _out().print(f"{compared} compared, " + (f"{differing} differ" if differing else "all agree") + beside)


def show_problems(reports: Sequence[RecoveryReport]) -> None:
    """`lockstep recover`: what was done, what is left."""
    for one in reports:
        done = [f"{len(one.finished)} finished", f"{len(one.voided)} voided", f"{one.swept} swept"]
        _out().print(f"{one.pipeline}: {', '.join(done)}")
        for problem in one.problems:
            _say(f"[bold red]problem[/]: {escape(problem)}")


def show_forgotten(report: RecoveryReport) -> None:
    """`lockstep forget`: what was taken away, and what is left."""
    _out().print(f"{report.pipeline} is forgotten, {report.swept} transactions and folders of it are gone")
    for problem in report.problems:
        _say(f"[bold red]problem[/]: {escape(problem)}")
    if report.problems:
        _say("what is left goes once the cause is gone: say the same again")


def show_savepoint(found: Json) -> None:
    """`lockstep savepoint`: which epoch it is of, and each state's rows and bytes."""
    _out().print(f"savepoint of {found['pipeline']} epoch {found['epoch']}, {found['hash'][:12]}")
    for name, size in found["state"].items():
        _say(f"{escape(name)}: {size['rows']:,} rows, {size['bytes']:,} bytes")


def show_overrides(found: Sequence[Override]) -> None:
    """`lockstep override`: what people have said, the last one of each sink in force."""
    if not found:
        _out().print("every sink works as it is deployed")
    seen: set[str] = set()
    for one in found:
        told = ", ".join(f"{name}={value}" for name, value in one.settings.items()) or "as deployed"
        force = "in force" if one.sink not in seen else "before"
        seen.add(one.sink)
        at = one.at.astimezone(UTC).isoformat(timespec="seconds")
        _say(escape(f"{one.sink}: {told} ({force}; {at} by {one.actor}: {one.reason})"))


def show_renumbering(found: Renumbering) -> None:
    """`lockstep renumber`: what the ledger lacks, what lies around, where numbers go on."""
    for one in found.shown:
        _say(f"shown, and not known to the ledger: {escape(str(one))}, token {one.token}")
    for left in found.left:
        _say(f"left as it is, commit it or take it away by hand: {escape(left.name)}")
    _say(f"epochs of {found.pipeline} go on above {found.epoch}, tokens above {found.token}")


def _say(line: str) -> None:
    """Below a table, and not wrapped: paths in it are there to be copied."""
    _out().print(f"  {line}", soft_wrap=True)


def _epoch_row(one: EpochStatus) -> tuple[str, ...]:
    epoch = one.epoch
    colour = "green" if epoch.state in DECIDED else "red" if epoch.state is EpochState.VOID else "yellow"
    sinks = ", ".join(f"{p.sink} {p.publication or p.state}" for p in one.participants)
    rows = ", ".join(f"{name} {count:,}" for name, count in one.rows.items())
    span = f"{epoch.interval.start:%Y-%m-%d %H:%M} → {epoch.interval.end:%Y-%m-%d %H:%M}" if epoch.interval else ""
    return (str(epoch.id), span, f"[{colour}]{epoch.state}[/]", str(epoch.attempt), _age(one.age), rows, sinks)


def _age(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
