"""The command line's tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any, Literal

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from lockstep.cli._row_lines import row_lines
from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import EpochReport, Json, Outcome, Participant
from lockstep.ledger.administration import HistoryPart, Pruning
from lockstep.ledger.reader import Override
from lockstep.ledger.report import EpochStatus, HistoryEntry, PipelineStatus
from lockstep.observability import suggestions
from lockstep.observability.formatting import short_age, short_interval
from lockstep.operations.doctor import Finding, Severity
from lockstep.operations.quarantine import QuarantineLog
from lockstep.operations.rebuild import Rebuilding
from lockstep.operations.renumber import Renumbering
from lockstep.operations.restate import Restatable
from lockstep.operations.restore import Restorable
from lockstep.operations.verify import Verification
from lockstep.operations.wal_diff import WalDiff
from lockstep.operations.wal_log import WalLog
from lockstep.protocol.planned_sinks import describe_redefined
from lockstep.protocol.recover import RecoveryReport
from lockstep.sinks.compacting import Compaction
from lockstep.states import DECIDED, EpochState, ParticipantState

_ROOMY = 100  #: columns of a terminal from which on outputs and sinks are named one by one


#: What a terminal obeys and doesn't show: control characters but the end of a line and a tab, and directions of text.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text, with what a terminal would obey written as Python does."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


class _Plain(Console):
    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)


def _out() -> Console:
    """As wide as the terminal is now. What the ledger holds is text: no `:name:` is a picture, no sequence is obeyed;
    nor is text searched for what could be coloured, which takes minutes where it is long."""
    return _Plain(emoji=False, highlight=False)


def show_epochs(pipelines: Sequence[PipelineStatus]) -> None:
    """`lockstep status`: a table a pipeline, then what is stuck."""
    if not pipelines:
        _out().print("no pipeline has run yet")
    for found in pipelines:
        counts = ", ".join(f"{n} {state}" for state, n in found.counts.items())
        through = f"verified through epoch {found.verified_through}" if found.verified_through else "none verified"
        counts = f"{counts}; {through}" if counts else "no epochs"
        _out().print(f"[bold]{found.name}[/] ({found.identity}): {counts}", soft_wrap=True)
        if found.epochs:
            _out().print(_table_of(found.epochs))
        if found.forgotten:
            _say(f"[bold]forgotten[/] {escape(found.forgotten)}")
        if found.kept:
            since = f"{found.kept.oldest:%Y-%m-%d %H:%M}"
            _say(f"kept after cleanup: {found.kept.epochs:,} WALs, {found.kept.bytes / 1e6:,.1f} MB, since {since}")
        if amiss := found.unproven:
            why = escape(f"{amiss.why}; {suggestions.verify(found.name, amiss.epoch)} compares it")
            _say(f"[bold red]unproven[/]: epoch {amiss.epoch} in {amiss.sink}: {why}")
        for hole in found.holes:
            _say(f"hole: no epoch for {hole}")
        for source, holder in _holders(found):
            _say(f"[bold yellow]held back[/]: when source {source} was last planned, rows waited for {escape(holder)}")
        for source in _snapshots(found):
            _say(f"snapshot: each epoch reads all of source {source}")
        for source in _finished(found):
            _say(f"[bold]finished[/]: source {source} is read to its end, later epochs have nothing of it")
        for first, *others in _redefined(found):
            more = f". The same goes for epochs {', '.join(str(one.epoch.id) for one in others)}" if others else ""
            _say(f"[bold yellow]redefined[/]: {escape(describe_redefined(first.epoch, first.redefined) + more)}")
        for one in found.epochs:
            if one.stuck:
                _say(f"[bold red]stuck[/]: epoch {one.epoch.id} ({one.epoch.state}): {escape(one.stuck)}")
            if one.verdict and one.verdict.outcome is Outcome.RELEASED:
                _say(f"[bold yellow]released[/]: epoch {one.epoch.id}, {escape(str(one.verdict))}")
            if one.verdict and one.verdict.warnings:
                named = ", ".join(map(str, one.verdict.warnings))
                _say(f"[bold yellow]warned[/]: of epoch {one.epoch.id} by {escape(named)}")
            for output, rows in one.quarantined.items():
                told = (
                    f"{rows:,} rows of {output}: {suggestions.quarantine(found.name, one.epoch.id, output)} shows them"
                )
                _say(f"[bold yellow]quarantined[/]: of epoch {one.epoch.id} {escape(told)}")
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


def _finished(found: PipelineStatus) -> Sequence[str]:
    """The sources that the newest epoch has read to their end."""
    newest = max(found.epochs, key=lambda one: one.epoch.id, default=None)
    return newest.finished if newest else ()


def _redefined(found: PipelineStatus) -> Iterable[list[EpochStatus]]:
    """Those of which the newest epoch has the same otherwise, together, the oldest first."""
    oldest = sorted((one for one in found.epochs if one.redefined), key=lambda one: one.epoch.id)
    kinds = dict.fromkeys(one.redefined for one in oldest)
    return [[one for one in oldest if one.redefined == kind] for kind in kinds]


def _snapshots(found: PipelineStatus) -> Sequence[str]:
    """The sources that the newest epoch has read whole, as each one does."""
    newest = max(found.epochs, key=lambda one: one.epoch.id, default=None)
    return newest.epoch.plan.snapshots if newest else ()


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
    adopted = any(one.presence for one in found)
    for column in ("epoch", "sink", "output", "rows sealed", "rows shown", *(["files"] if adopted else []), ""):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for one in found:
        verdict = "[bold red]differs[/]" if one.problem else escape(one.note or "") or "[green]agrees[/]"
        shown = "" if one.rows_shown is None else f"{one.rows_shown:,}"
        files = [one.presence or ""] if adopted else []
        table.add_row(str(one.epoch), one.sink, one.output, f"{one.rows_sealed:,}", shown, *files, verdict)
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


def show_finding(found: Finding) -> None:
    """`lockstep doctor`: a line for each thing that was looked at, and what mends it."""
    colour = {Severity.FINE: "green", Severity.WARNING: "yellow", Severity.BROKEN: "bold red"}[found.severity]
    about = f" {escape(found.about)}" if found.about else ""
    _out().print(f"[{colour}]{found.severity:<7}[/] {found.check}{about}: {escape(found.says)}", soft_wrap=True)
    if found.command:
        _say(f"→ {escape(found.command.strip('`'))}")


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
    if not found["state"]:
        _say(f"positions alone, of {escape(', '.join(found['positions']))}: the pipeline keeps no state")
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
    for lacking in found.lacking:
        _say(f"sink {escape(lacking.sink)} goes on as it is: epoch {lacking.epoch}, and what else it lacks, stays away")
    for gone in found.unasked:
        _say(f"not looked into, as no plan in force has it: sink {escape(gone)}")
    for left in found.left:
        _say(f"left as it is, commit it or take it away by hand: {escape(left.name)}")
    _say(f"epochs of {found.pipeline} go on above {found.epoch}, tokens above {found.token}")


def show_rebuilding(found: Rebuilding, *, planned: bool) -> None:
    """`lockstep rebuild`: what comes back, what isn't proven, and why nothing is written."""
    _out().print(f"{found.pipeline}, of ledger {found.deployment}:", soft_wrap=True)
    half = [one for one in found.epochs if not one.published]
    for one in half:
        lacking = ", ".join(sorted(set(one.votes) - one.shown))
        _say(f"half published: epoch {one.id}; recovery has it shown in {escape(lacking)}, from its WAL")
    for sentence in found.unproven:
        _say(f"[yellow]not proven[/]: {escape(sentence)}")
    for sentence in found.refused:
        _say(f"[bold red]refused[/]: {escape(sentence)}")
    would = "would be" if planned or found.refused else "are"
    whole = f"{len(found.epochs) - len(half):,} of them shown by every sink"
    _say(f"{len(found.epochs):,} epochs {would} in the ledger, {whole}")
    _say(f"epochs go on above {found.beyond}, tokens above {found.token}")
    if found.refused:
        _say("nothing is written: mend what is refused, and look again")
    elif planned:
        _say(f"→ lockstep rebuild {found.pipeline} --agree --reason …")


def show_compaction(found: Compaction, *, planned: bool) -> None:
    """`lockstep compact`: how many files became how many, and which were left alone."""
    if not found.files_before:
        _out().print(f"{found.sink}: nothing to compact")
    else:
        would = "would become" if planned else "became"
        after = "" if found.bytes_after is None else f", {found.bytes_after / 1e6:,.1f} MB"
        _out().print(
            f"{found.sink}: {found.files_before:,} files, {found.bytes_before / 1e6:,.1f} MB, {would} "
            f"{'about ' if planned else ''}{found.files_after:,}{after}; {found.rows:,} rows",
            soft_wrap=True,
        )
    for why, number in sorted(found.kept.items()):
        _say(f"left as they are: {number:,} small files {escape(why)}")
    if (expired := found.expired) is not None:
        what = "would be deleted" if planned else "deleted"
        then = f"{expired.since:%Y-%m-%d %H:%M} UTC"
        _say(f"{what}: {expired.files:,} files, {expired.bytes / 1e6:,.1f} MB, that no version since {then} has")
        for why, number in sorted(expired.kept.items()):
            _say(f"not deleted: {number:,} files {escape(why)}")


@contextmanager
def showing_progress(what: str, *, hidden: bool) -> Iterator[Callable[[int, int], object]]:
    """A bar on stderr, where that is a terminal."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=hidden or not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def show_restatable(found: Sequence[Restatable]) -> None:
    """`lockstep restate --plan`: a line for each epoch, then who refuses."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("epoch", "interval", "state", "rows", "took"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for one in found:
        rows = ", ".join(f"{name} {count:,}" for name, count in one.rows.items())
        span = short_interval(one.interval) if one.interval else ""
        took = "" if one.took is None else f"{one.took.total_seconds():,.1f} s"
        table.add_row(str(one.epoch), span, str(one.state), rows, took)
    _out().print(table)
    for one in found:
        if one.through is not None:
            _say(f"epoch {one.epoch} and all up to epoch {one.through} are replaced by one: each hands on its state")
        for why in one.refusals.values():
            _say(f"[bold red]refused[/]: {escape(why)}")
    if not any(one.refusals for one in found):
        _say("every sink can replace it; nothing was changed")


def show_restorable(found: Restorable) -> None:
    """`lockstep restore --plan`: what would be shown in place of what, then who refuses."""
    rows, shown = (
        ", ".join(f"{name} {count:,}" for name, count in one.items()) for one in (found.rows, found.shown_rows)
    )
    kept = "isn't kept" if found.kept_since is None else f"is kept since {found.kept_since:%Y-%m-%d %H:%M %Z}"
    _plainly(f"epoch {found.epoch} (generation {found.generation}): {rows}; its WAL {kept}")
    _plainly(f"in place of epoch {found.shown}, which is shown: {shown}")
    if found.other_columns:
        _plainly(f"with other columns than are shown: {', '.join(found.other_columns)}")
    for why in found.refusals.values():
        _say(f"[bold red]refused[/]: {escape(why)}")
    if not found.refusals:
        _say("its WAL is as it was sealed, and every sink can replace what it shows; nothing was changed")


def show_restored(found: Sequence[EpochReport]) -> None:
    """`lockstep restore`: the epoch that shows earlier rows again."""
    for one in found:
        rows = ", ".join(f"{name} {count:,}" for name, count in one.rows.items())
        before = ", published before" if one.already_published else ""
        _plainly(f"{one.pipeline} epoch {one.epoch} {one.interval or ''} is {one.state}: {rows}{before}")


def show_restated(found: Sequence[EpochReport]) -> None:
    """`lockstep restate`: a line for each epoch that took another one's place."""
    for one in found:
        rows = ", ".join(f"{name} {count:,}" for name, count in one.rows.items())
        before = ", restated before: nothing was read" if one.already_published else ""
        _plainly(f"{one.pipeline} epoch {one.epoch} {one.interval or ''} is {one.state}: {rows}{before}")
    if any(one.already_published for one in found):
        _plainly("to restate what was restated before for this very reason, say another one, or --request and a name")


def show_wals(found: WalLog) -> None:
    """`lockstep wal list`: a line for each sealed WAL that is there."""
    spans = any(one.epoch.interval for one in found.wals)
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("epoch", *(["interval"] if spans else []), "state", "rows", "MB", "kept since"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for one in found.wals:
        outputs = one.epoch.counted
        rows = ", ".join(f"{name} {facts.get('rows', 0):,}" for name, facts in outputs.items())
        size = one.kept.bytes if one.kept else sum(facts.get("bytes", 0) for facts in outputs.values())
        since = "" if one.kept is None else f"{one.kept.retained_at:%Y-%m-%d %H:%M}"
        since += " (going)" if one.kept is not None and one.kept.expired_at is not None else ""
        span = [short_interval(one.epoch.interval) if one.epoch.interval else ""] if spans else []
        table.add_row(str(one.epoch.id), *span, str(one.epoch.state), rows, f"{size / 1e6:,.1f}", since)
    if found.wals:
        _out().print(table)
    _out().print(f"WALs of {found.pipeline} are kept {found.retention} after cleanup", soft_wrap=True)


def show_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """`lockstep wal show`: a table of what is not much."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in schema.names:
        table.add_column(Text(visible(column)), overflow="fold")
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            table.add_row(*(Text("" if value is None else visible(str(value))) for value in row))
    _out().print(table)


def show_quarantine(found: QuarantineLog) -> None:
    """`lockstep quarantine` of an epoch: a line for each output and source that has sent anything there."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("of", "rows", "by"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for output, facts in found.outputs.items():
        audits = ", ".join(f"{name} {rows:,}" for name, rows in facts["audits"].items() if rows)
        table.add_row(f"output {escape(output)}", f"{facts['rows']:,}", escape(audits))
    for source, rows in found.sources.items():
        table.add_row(f"source {escape(source)}", f"{rows:,}", "malformed")
    if table.row_count:
        _out().print(table)
    _out().print(f"{found.epoch}: they stand below {escape(found.folder)}", soft_wrap=True)


def show_diff(found: WalDiff) -> None:
    """`lockstep diff`: what only one of the two has, and some of it."""
    pair = ((found.first, 0, "-"), (found.second, 1, "+"))
    for epoch, index, sign in pair:
        if found.columns_only[index]:
            _say(f"{sign} columns that only epoch {epoch} has: {escape(', '.join(found.columns_only[index]))}")
    for one in found.examples:
        [text] = row_lines([one.row])
        often = "" if one.times == 1 else f"  ({one.times:,} times)"
        _plainly(f"{'-' if one.epoch == found.first else '+'} {text}{often}")
    if (shown := sum(one.times for one in found.examples)) < sum(found.only):
        _plainly(f"… and {sum(found.only) - shown:,} more rows")
    if found.equal:
        how = "by digest: no row was read"
        if not found.by_digest:
            how = "as SQL compares them; their digests differ, by a column's type or the sign of a zero"
        _out().print(f"the same {found.rows[0]:,} rows, {how}", soft_wrap=True)
        return
    told = [f"{found.only[index]:,} of {found.rows[index]:,} rows only in epoch {epoch}" for epoch, index, _ in pair]
    if found.changed is not None:
        told.append(f"keys changed: {found.changed:,}")
    _out().print("; ".join(told), soft_wrap=True)


def show_expired(pipeline: str, found: Sequence[RetainedWal], *, planned: bool) -> None:
    """`lockstep prune`: the kept WALs that went."""
    if found:
        would = "would be " if planned else ""
        size = sum(one.bytes for one in found) / 1e6
        _say(f"{would}deleted: {len(found):,} kept WALs of {pipeline}, {size:,.1f} MB")


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
    right = ("epoch", "attempt", "age", "rows", "rows sealed", "rows shown", "MB")
    return "right" if column in right else "left"


def _epoch_row(one: EpochStatus, roomy: bool) -> tuple[str, ...]:
    epoch = one.epoch
    colour = "green" if epoch.state in DECIDED else "red" if epoch.state is EpochState.VOID else "yellow"
    span = short_interval(epoch.interval) if epoch.interval else ""
    rows = ", ".join(f"{name} {count:,}" for name, count in one.rows.items())
    if one.rows and not roomy:
        rows = f"{sum(one.rows.values()):,}"
    sinks = _sinks(one.participants, roomy)
    state = f"[{colour}]{epoch.state}[/]" + (f" for {epoch.generation.replaces}" if epoch.generation else "")
    return (str(epoch.id), span, state, str(one.attempts), short_age(one.age), rows, sinks)


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
