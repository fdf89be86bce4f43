"""The command line's tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, time, timedelta
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lockstep.epoch import Interval, Json, Participant
from lockstep.ledger.report import EpochStatus, HistoryEntry, PipelineStatus
from lockstep.ledger.retention import HistoryPart, Pruning
from lockstep.ledger.settings import Override
from lockstep.operations.renumber import Renumbering
from lockstep.operations.verify import Verification
from lockstep.roles.recover import RecoveryReport
from lockstep.states import DECIDED, EpochState, ParticipantState

_ROOMY = 100  #: columns of a terminal from which on outputs and sinks are named one by one


def _out() -> Console:
    """As wide as the terminal is now."""
    return Console()


def show_epochs(pipelines: Sequence[PipelineStatus]) -> None:
    """`lockstep status`: a table a pipeline, then what is stuck."""
    if not pipelines:
        _out().print("no pipeline has run yet")
    for found in pipelines:
        counts = ", ".join(f"{n} {state}" for state, n in found.counts.items())
        _out().print(f"[bold]{found.name}[/] ({found.identity}): {counts or 'no epochs'}", soft_wrap=True)
        if found.epochs:
            _out().print(_table_of(found.epochs))
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


def _table_of(epochs: Sequence[EpochStatus]) -> Table:
    """One line an epoch, as long as names and numbers are of a usual length."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, collapse_padding=True)
    spans = any(one.epoch.interval for one in epochs)
    for column in ("epoch", *(["interval"] if spans else []), "state", "attempt", "age", "rows", "sinks"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    roomy = _out().width >= _ROOMY
    for one in epochs:
        number, span, *rest = _epoch_row(one, roomy)
        table.add_row(number, *([span] if spans else []), *rest)
    return table


def _holders(found: PipelineStatus) -> list[tuple[str, str]]:
    """Source and who kept its rows from the newest epoch."""
    newest = max(found.epochs, key=lambda one: one.epoch.id, default=None)
    return list(newest.held_back.items()) if newest else []


def show_history(entries: Sequence[HistoryEntry]) -> None:
    """`lockstep status --epoch`: a line for every transition, and one more where its actor or reason is another."""
    wide = max((len(one.sink or "epoch") for one in entries), default=0)
    attempt, actor, reason = None, None, None
    for one in entries:
        line = f"{one.at:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f"  {one.role:<8}  {one.sink or 'epoch':<{wide}}  {_move(one)}"
        if one.sink is None and one.attempt != attempt:
            attempt = one.attempt
            line += f", attempt {one.ordinal} (token {attempt})" if one.ordinal else f", token {attempt}"
        told = "" if one.actor == actor else f"by {one.actor}"
        fits = len(line) + len(told) + 2 <= _out().width
        _plainly(f"{line}  {told}".rstrip() if fits else line)
        if not fits:
            _plainly(f"    {told}")
        if one.reason and one.reason != reason:
            _plainly(f"    because: {one.reason}")
        actor, reason = one.actor, one.reason


def _move(one: HistoryEntry) -> str:
    move = one.target if one.source is None else f"{one.source} → {one.target}"
    if one.source == one.target:
        move = f"stays {one.target}"
    return move if one.sink is None or one.token is None else f"{move}, token {one.token}"


def show_verifications(found: Sequence[Verification]) -> None:
    """`lockstep verify`: one line an output and sink, then what differs."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("epoch", "sink", "output", "rows sealed", "rows shown", ""):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for one in found:
        verdict = "[bold red]differs[/]" if one.problem else escape(one.note or "") or "[green]agrees[/]"
        shown = "" if one.rows_shown is None else f"{one.rows_shown:,}"
        table.add_row(str(one.epoch), one.sink, one.output, f"{one.rows_sealed:,}", shown, verdict)
    _out().print(table)
    for one in found:
        if one.problem:
            _say(f"[bold red]epoch {one.epoch}[/], {one.sink}, {one.output}: {escape(one.problem)}")
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


def show_pruning(found: Pruning) -> None:
    """`lockstep prune`: what went, what stays and why."""
    would = "would be " if found.dry_run else ""
    for part in found.dropped:
        _say(f"{would}dropped: {part.name}, {_times(part)}, {part.bytes / 1e6:.1f} MB")
    if not found.dropped:
        _say(f"nothing {would}dropped: no part of the history ends before {found.before.date()} and may go")
    if found.held_by is not None:
        _say(f"older parts stay for {escape(found.held_by)}, which isn't finished")
    if found.begun is not None:
        _say(f"{would}begun: a new part of the history{f', {found.begun}' if found.begun else ''}")
    for part in found.kept:
        _say(f"kept: {part.name}, {_times(part)}, {part.bytes / 1e6:.1f} MB")


def _times(part: HistoryPart) -> str:
    since = f"from {part.starts.date()}" if part.starts else "from the start"
    return f"{since} to {part.ends.date()}" if part.ends else since


def _say(line: str) -> None:
    """Below a table, and not wrapped: paths in it are there to be copied."""
    _out().print(f"  {line}", soft_wrap=True)


def _plainly(line: str) -> None:
    """As it is: what looks like markup, or is longer than the terminal, too."""
    _out().print(line, soft_wrap=True, markup=False, highlight=False)


def _justified(column: str) -> Literal["left", "right"]:
    return "right" if column in ("epoch", "attempt", "age", "rows", "rows sealed", "rows shown") else "left"


def _epoch_row(one: EpochStatus, roomy: bool) -> tuple[str, ...]:
    epoch = one.epoch
    colour = "green" if epoch.state in DECIDED else "red" if epoch.state is EpochState.VOID else "yellow"
    span = _span(epoch.interval) if epoch.interval else ""
    rows = ", ".join(f"{name} {count:,}" for name, count in one.rows.items())
    if one.rows and not roomy:
        rows = f"{sum(one.rows.values()):,}"
    sinks = _sinks(one.participants, roomy)
    return (str(epoch.id), span, f"[{colour}]{epoch.state}[/]", str(one.attempts), _age(one.age), rows, sinks)


def _sinks(participants: Sequence[Participant], roomy: bool) -> str:
    """Where they stand; all at one place are counted, and where there is no room those that have come furthest."""
    standing = [str(one.publication or one.state) for one in participants]
    if not standing:
        return ""
    if len(set(standing)) == 1:
        return f"{len(standing)} {standing[0]}"
    if roomy:
        return ", ".join(f"{one.sink} {at}" for one, at in zip(participants, standing, strict=True))
    furthest = max((one.state for one in participants), key=list(ParticipantState).index)
    return f"{sum(one.state is furthest for one in participants)} of {len(participants)} {furthest}"


def _span(interval: Interval) -> str:
    """In UTC, as short as it is true."""
    start, end = interval.start, interval.end
    days = start.time() == end.time() == time.min
    if days and end - start == timedelta(days=1):
        return f"{start:%Y-%m-%d}"
    if days:
        return f"{start:%Y-%m-%d} → {end:%Y-%m-%d}"
    if start.second or end.second:
        return f"{start:%Y-%m-%d %H:%M:%S} → {end:%Y-%m-%d %H:%M:%S}"
    return (
        f"{start:%Y-%m-%d %H:%M} → {end:%H:%M}"
        if start.date() == end.date()
        else f"{start:%Y-%m-%d %H:%M} → {end:%Y-%m-%d %H:%M}"
    )


def _age(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
