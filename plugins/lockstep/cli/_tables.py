"""Prints results of commands for people: as tables and lines."""

from __future__ import annotations

import json
import math
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

from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import EpochReport, Json, Outcome, Participant
from lockstep.errors import SinkRejected
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
from lockstep.sinks.json_rows import json_objects, small_batches
from lockstep.states import DECIDED, EpochState, ParticipantState

_WIDE = 100  #: columns of a terminal from which outputs and sinks are listed by name

#: Characters that a terminal interprets instead of showing: control characters except newline and tab, surrogates, and
#: marks of text direction.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with characters that a terminal would interpret escaped as in Python."""
    return _INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)


class _Plain(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def _out() -> Console:
    """A console as wide as the terminal is now. Values of the ledger are text: no emoji, no escape sequences, and no
    highlighting, which takes minutes for long text."""
    return _Plain(emoji=False, highlight=False)


def show_epochs(pipelines: Sequence[PipelineStatus]) -> None:
    """Print for `lockstep status` a table for each pipeline, then what is stuck."""
    if not pipelines:
        _out().print("no pipeline has run yet")
    for pipeline in pipelines:
        counts = ", ".join(f"{n} {state}" for state, n in pipeline.counts.items())
        verified = pipeline.verified_through
        through = f"verified through epoch {verified}" if verified else "none verified"
        counts = f"{counts}; {through}" if counts else "no epochs"
        _out().print(f"[bold]{pipeline.name}[/] ({pipeline.identity}): {counts}", soft_wrap=True)
        if pipeline.epochs:
            _out().print(_table_of(pipeline.epochs))
        _show_notes(pipeline)
        for status in pipeline.epochs:
            _show_epoch_notes(status)


def _show_notes(pipeline: PipelineStatus) -> None:
    if pipeline.forgotten:
        _say(f"[bold]forgotten[/] {escape(pipeline.forgotten)}")
    if retained := pipeline.kept:
        since = f"{retained.oldest:%Y-%m-%d %H:%M}"
        _say(f"kept after cleanup: {retained.epochs:,} WALs, {retained.bytes / 1e6:,.1f} MB, since {since}")
    if unproven := pipeline.unproven:
        why = escape(f"{unproven.why}; {suggestions.verify(pipeline.name, unproven.epoch)} compares it")
        _say(f"[bold red]unproven[/]: epoch {unproven.epoch} in {unproven.sink}: {why}")
    for hole in pipeline.holes:
        _say(f"hole: no epoch for {hole}")
    newest = max(pipeline.epochs, key=lambda status: status.epoch.id, default=None)
    if newest is not None:
        for source, holder in newest.held_back.items():
            _say(f"[bold yellow]held back[/]: when source {source} was last planned, rows waited for {escape(holder)}")
        for source in newest.epoch.plan.snapshots:
            _say(f"snapshot: each epoch reads all of source {source}")
        for source in newest.finished:
            _say(f"[bold]finished[/]: source {source} is read to its end, later epochs have nothing of it")
    redefined = sorted((status for status in pipeline.epochs if status.redefined), key=lambda status: status.epoch.id)
    for difference in dict.fromkeys(status.redefined for status in redefined):
        first, *rest = [status.epoch for status in redefined if status.redefined == difference]
        more = f". The same goes for epochs {', '.join(str(epoch.id) for epoch in rest)}" if rest else ""
        _say(f"[bold yellow]redefined[/]: {escape(describe_redefined(first, difference) + more)}")


def _show_epoch_notes(status: EpochStatus) -> None:
    epoch, verdict = status.epoch, status.verdict
    if status.stuck:
        _say(f"[bold red]stuck[/]: epoch {epoch.id} ({epoch.state}): {escape(status.stuck)}")
    if verdict and verdict.outcome is Outcome.RELEASED:
        _say(f"[bold yellow]released[/]: epoch {epoch.id}, {escape(str(verdict))}")
    if verdict and verdict.warnings:
        _say(f"[bold yellow]warned[/]: of epoch {epoch.id} by {escape(', '.join(map(str, verdict.warnings)))}")
    for output, rows in status.quarantined.items():
        command = suggestions.quarantine(epoch.pipeline, epoch.id, output)
        text = f"{rows:,} rows of {output}: {command} shows them"
        _say(f"[bold yellow]quarantined[/]: of epoch {epoch.id} {escape(text)}")
    for path in status.late:
        _say(f"[bold red]late[/]: epoch {epoch.id} was decided without {escape(path)}")
    for change in status.changed:
        _say(f"[bold red]changed[/]: after epoch {epoch.id} had read it: {escape(str(change))}")


def _table_of(epochs: Sequence[EpochStatus]) -> Table:
    """A row for each epoch, one line each while names and numbers have usual lengths."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, collapse_padding=True)
    spans = any(status.epoch.interval for status in epochs)
    for column in ("epoch", *(["interval"] if spans else []), "state", "attempt", "age", "rows", "sinks"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    wide = _out().width >= _WIDE
    for status in epochs:
        number, span, *rest = _epoch_row(status, wide)
        table.add_row(number, *([span] if spans else []), *rest)
    return table


def show_history(entries: Sequence[HistoryEntry]) -> None:
    """Print for `lockstep status --epoch` a line for every transition, with actor and reason where they change."""
    width = max((len(entry.sink or "epoch") for entry in entries), default=0)
    attempt, actor, reason = None, None, None
    for entry in entries:
        moment = f"{entry.at:%Y-%m-%d %H:%M:%S.%f}"[:-3]
        line = f"{moment}  {entry.role:<8}  {entry.sink or 'epoch':<{width}}  {_move(entry)}"
        if entry.sink is None and entry.attempt != attempt:
            attempt = entry.attempt
            line += f", attempt {entry.ordinal} (token {attempt})" if entry.ordinal else f", token {attempt}"
        by = "" if entry.actor == actor else f"by {entry.actor}"
        fits = len(line) + len(by) + 2 <= _out().width
        _plainly(f"{line}  {by}".rstrip() if fits else line)
        if not fits:
            _plainly(f"    {by}")
        if entry.reason and entry.reason != reason:
            _plainly(f"    because: {entry.reason}")
        actor, reason = entry.actor, entry.reason


def _move(entry: HistoryEntry) -> str:
    move = entry.target if entry.source is None else f"{entry.source} → {entry.target}"
    if entry.source == entry.target:
        move = f"stays {entry.target}"
    return move if entry.sink is None or entry.token is None else f"{move}, token {entry.token}"


def show_verifications(checks: Sequence[Verification]) -> None:
    """Print for `lockstep verify` a row for each output and sink, then the differences."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    adopted = any(check.presence for check in checks)
    for column in ("epoch", "sink", "output", "rows sealed", "rows shown", *(["files"] if adopted else []), ""):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for check in checks:
        verdict = "[bold red]differs[/]" if check.problem else escape(check.note or "") or "[green]agrees[/]"
        rows = [f"{check.rows_sealed:,}", "" if check.rows_shown is None else f"{check.rows_shown:,}"]
        files = [check.presence or ""] if adopted else []
        table.add_row(str(check.epoch), check.sink, check.output, *rows, *files, verdict)
    _out().print(table)
    for check in checks:
        if check.problem:
            _say(f"[bold red]epoch {check.epoch}[/], {check.sink}, {check.output}: {escape(check.problem)}")
    differing = sum(not check.agrees for check in checks)
    unread = sum(check.agrees and not check.compared for check in checks)
    note = f"; {unread} can't be read back" if unread else ""
    _out().print(f"{len(checks) - unread} compared, " + (f"{differing} differ" if differing else "all agree") + note)


def show_problems(reports: Sequence[RecoveryReport]) -> None:
    """Print for `lockstep recover` what was done and what remains."""
    for report in reports:
        done = [f"{len(report.finished)} finished", f"{len(report.voided)} voided", f"{report.swept} swept"]
        _out().print(f"{report.pipeline}: {', '.join(done)}")
        for problem in report.problems:
            _say(f"[bold red]problem[/]: {escape(problem)}")


def show_finding(finding: Finding) -> None:
    """Print for `lockstep doctor` a line for each check, and the command that fixes it."""
    colour = {Severity.FINE: "green", Severity.WARNING: "yellow", Severity.BROKEN: "bold red"}[finding.severity]
    about = f" {escape(finding.about)}" if finding.about else ""
    _out().print(f"[{colour}]{finding.severity:<7}[/] {finding.check}{about}: {escape(finding.says)}", soft_wrap=True)
    if finding.command:
        _say(f"→ {escape(finding.command.strip('`'))}")


def show_forgotten(report: RecoveryReport) -> None:
    """Print for `lockstep forget` what was deleted and what remains."""
    _out().print(f"{report.pipeline} is forgotten, {report.swept} of its transactions and folders are deleted")
    for problem in report.problems:
        _say(f"[bold red]problem[/]: {escape(problem)}")
    if report.problems:
        _say("the rest is deleted once the cause is gone: run the same command again")


def show_savepoint(savepoint: Json) -> None:
    """Print for `lockstep savepoint` the epoch, and each state's rows and bytes."""
    _out().print(f"savepoint of {savepoint['pipeline']} epoch {savepoint['epoch']}, {savepoint['hash'][:12]}")
    if not savepoint["state"]:
        _say(f"positions alone, of {escape(', '.join(savepoint['positions']))}: the pipeline keeps no state")
    for name, size in savepoint["state"].items():
        _say(f"{escape(name)}: {size['rows']:,} rows, {size['bytes']:,} bytes")


def show_overrides(overrides: Sequence[Override]) -> None:
    """Print for `lockstep override` every override, and which one of each sink is in force."""
    if not overrides:
        _out().print("every sink works as it is deployed")
    seen: set[str] = set()
    for override in overrides:
        settings = ", ".join(f"{name}={value}" for name, value in override.settings.items()) or "as deployed"
        force = "in force" if override.sink not in seen else "before"
        seen.add(override.sink)
        at = override.at.astimezone(UTC).isoformat(timespec="seconds")
        _say(escape(f"{override.sink}: {settings} ({force}; {at} by {override.actor}: {override.reason})"))


def show_renumbering(result: Renumbering) -> None:
    """Print for `lockstep renumber` what the ledger lacks, unfinished transactions, and where numbers continue."""
    for epoch in result.shown:
        _say(f"published, and unknown to the ledger: {escape(str(epoch))}, token {epoch.token}")
    for lacking in result.lacking:
        _say(f"sink {escape(lacking.sink)} continues without epoch {lacking.epoch} and whatever else it lacks")
    for sink in result.unasked:
        _say(f"not examined, as it is in no current plan: sink {escape(sink)}")
    for transaction in result.left:
        _say(f"left as it is, commit it or roll it back by hand: {escape(transaction.name)}")
    _say(f"epochs of {result.pipeline} go on above {result.epoch}, tokens above {result.token}")


def show_rebuilding(result: Rebuilding, *, planned: bool) -> None:
    """Print for `lockstep rebuild` what is recovered, what isn't proven, and why nothing is written."""
    _out().print(f"{result.pipeline}, of ledger {result.deployment}:", soft_wrap=True)
    half = [epoch for epoch in result.epochs if not epoch.published]
    for epoch in half:
        lacking = ", ".join(sorted(set(epoch.votes) - epoch.shown))
        _say(f"half published: epoch {epoch.id}; recovery publishes it in {escape(lacking)}, from its WAL")
    for sentence in result.unproven:
        _say(f"[yellow]not proven[/]: {escape(sentence)}")
    for sentence in result.refused:
        _say(f"[bold red]refused[/]: {escape(sentence)}")
    would = "would be" if planned or result.refused else "are"
    whole = f"{len(result.epochs) - len(half):,} of them shown by every sink"
    _say(f"{len(result.epochs):,} epochs {would} in the ledger, {whole}")
    _say(f"epochs go on above {result.beyond}, tokens above {result.token}")
    if result.refused:
        _say("nothing is written: fix what is refused, then run it again")
    elif planned:
        _say(f"→ lockstep rebuild {result.pipeline} --agree --reason …")


def show_compaction(result: Compaction, *, planned: bool) -> None:
    """Print for `lockstep compact` the numbers of files before and after, and which files were left alone."""
    if not result.files_before:
        _out().print(f"{result.sink}: nothing to compact")
    else:
        would = "would become" if planned else "became"
        after = "" if result.bytes_after is None else f", {result.bytes_after / 1e6:,.1f} MB"
        _out().print(
            f"{result.sink}: {result.files_before:,} files, {result.bytes_before / 1e6:,.1f} MB, {would} "
            f"{'about ' if planned else ''}{result.files_after:,}{after}; {result.rows:,} rows",
            soft_wrap=True,
        )
    for why, number in sorted(result.kept.items()):
        _say(f"left as they are: {number:,} small files {escape(why)}")
    if (expired := result.expired) is not None:
        what = "would be deleted" if planned else "deleted"
        then = f"{expired.since:%Y-%m-%d %H:%M} UTC"
        _say(f"{what}: {expired.files:,} files, {expired.bytes / 1e6:,.1f} MB, that no version since {then} has")
        for why, number in sorted(expired.kept.items()):
            _say(f"not deleted: {number:,} files {escape(why)}")


@contextmanager
def showing_progress(what: str, *, hidden: bool) -> Iterator[Callable[[int, int], object]]:
    """Show a progress bar on stderr if that is a terminal; yields the function that updates it."""
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


def show_restatable(epochs: Sequence[Restatable]) -> None:
    """Print for `lockstep restate --plan` a row for each epoch, then the refusals."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("epoch", "interval", "state", "rows", "took"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for epoch in epochs:
        rows = ", ".join(f"{name} {count:,}" for name, count in epoch.rows.items())
        span = short_interval(epoch.interval) if epoch.interval else ""
        took = "" if epoch.took is None else f"{epoch.took.total_seconds():,.1f} s"
        table.add_row(str(epoch.epoch), span, str(epoch.state), rows, took)
    _out().print(table)
    for epoch in epochs:
        if epoch.through is not None:
            _say(f"epoch {epoch.epoch} and all up to {epoch.through} are replaced by one, as each passes on its state")
        for why in epoch.refusals.values():
            _say(f"[bold red]refused[/]: {escape(why)}")
    if not any(epoch.refusals for epoch in epochs):
        _say("every sink can replace it; nothing was changed")


def show_restorable(restorable: Restorable) -> None:
    """Print for `lockstep restore --plan` what would replace what, then the refusals."""
    rows, rows_shown = (
        ", ".join(f"{name} {count:,}" for name, count in counts.items())
        for counts in (restorable.rows, restorable.shown_rows)
    )
    wal = "isn't kept" if restorable.kept_since is None else f"is kept since {restorable.kept_since:%Y-%m-%d %H:%M %Z}"
    _plainly(f"epoch {restorable.epoch} (generation {restorable.generation}): {rows}; its WAL {wal}")
    _plainly(f"in place of epoch {restorable.shown}, which is shown: {rows_shown}")
    if restorable.other_columns:
        _plainly(f"with other columns than are shown: {', '.join(restorable.other_columns)}")
    for why in restorable.refusals.values():
        _say(f"[bold red]refused[/]: {escape(why)}")
    if not restorable.refusals:
        _say("its WAL is as it was sealed, and every sink can replace its rows; nothing was changed")


def show_restored(reports: Sequence[EpochReport]) -> None:
    """Print for `lockstep restore` the epoch that shows the earlier rows again."""
    for report in reports:
        rows = ", ".join(f"{name} {count:,}" for name, count in report.rows.items())
        before = ", published before" if report.already_published else ""
        _plainly(f"{report.pipeline} epoch {report.epoch} {report.interval or ''} is {report.state}: {rows}{before}")


def show_restated(reports: Sequence[EpochReport]) -> None:
    """Print for `lockstep restate` a line for each epoch that replaced another one."""
    for report in reports:
        rows = ", ".join(f"{name} {count:,}" for name, count in report.rows.items())
        before = ", restated before: nothing was read" if report.already_published else ""
        _plainly(f"{report.pipeline} epoch {report.epoch} {report.interval or ''} is {report.state}: {rows}{before}")
    if any(report.already_published for report in reports):
        _plainly("to restate again what was restated for this reason, give another reason, or --request and a name")


def show_wals(log: WalLog) -> None:
    """Print for `lockstep wal list` a row for each sealed WAL."""
    spans = any(wal.epoch.interval for wal in log.wals)
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("epoch", *(["interval"] if spans else []), "state", "rows", "MB", "kept since"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for wal in log.wals:
        outputs = wal.epoch.counted
        rows = ", ".join(f"{name} {facts.get('rows', 0):,}" for name, facts in outputs.items())
        size = wal.kept.bytes if wal.kept else sum(facts.get("bytes", 0) for facts in outputs.values())
        since = "" if wal.kept is None else f"{wal.kept.retained_at:%Y-%m-%d %H:%M}"
        since += " (going)" if wal.kept is not None and wal.kept.expired_at is not None else ""
        span = [short_interval(wal.epoch.interval) if wal.epoch.interval else ""] if spans else []
        table.add_row(str(wal.epoch.id), *span, str(wal.epoch.state), rows, f"{size / 1e6:,.1f}", since)
    if log.wals:
        _out().print(table)
    _out().print(f"WALs of {log.pipeline} are kept {log.retention} after cleanup", soft_wrap=True)


def show_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Print for `lockstep wal show` a table of a few rows."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in schema.names:
        table.add_column(Text(visible(column)), overflow="fold")
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            table.add_row(*(Text("" if value is None else visible(str(value))) for value in row))
    _out().print(table)


def show_quarantine(log: QuarantineLog) -> None:
    """Print for `lockstep quarantine` a row for each output and source of the epoch with rows in quarantine."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for column in ("of", "rows", "by"):
        table.add_column(column, overflow="fold", justify=_justified(column))
    for output, facts in log.outputs.items():
        audits = ", ".join(f"{name} {rows:,}" for name, rows in facts["audits"].items() if rows)
        table.add_row(f"output {escape(output)}", f"{facts['rows']:,}", escape(audits))
    for source, rows in log.sources.items():
        table.add_row(f"source {escape(source)}", f"{rows:,}", "malformed")
    if table.row_count:
        _out().print(table)
    _out().print(f"{log.epoch}: they are below {escape(log.folder)}", soft_wrap=True)


def show_diff(result: WalDiff) -> None:
    """Print for `lockstep diff` the rows that only one of the epochs has, as counts and examples."""
    pair = ((result.first, 0, "-"), (result.second, 1, "+"))
    for epoch, index, sign in pair:
        if result.columns_only[index]:
            _say(f"{sign} columns that only epoch {epoch} has: {escape(', '.join(result.columns_only[index]))}")
    for example in result.examples:
        [text] = row_lines([example.row])
        often = "" if example.times == 1 else f"  ({example.times:,} times)"
        _plainly(f"{'-' if example.epoch == result.first else '+'} {text}{often}")
    if (listed := sum(example.times for example in result.examples)) < sum(result.only):
        _plainly(f"… and {sum(result.only) - listed:,} more rows")
    if result.equal:
        how = "by digest: no row was read"
        if not result.by_digest:
            how = "as SQL compares them; their digests differ, by a column's type or the sign of a zero"
        _out().print(f"the same {result.rows[0]:,} rows, {how}", soft_wrap=True)
        return
    parts = [f"{result.only[index]:,} of {result.rows[index]:,} rows only in epoch {epoch}" for epoch, index, _ in pair]
    if result.changed is not None:
        parts.append(f"keys changed: {result.changed:,}")
    _out().print("; ".join(parts), soft_wrap=True)


def show_expired(pipeline: str, wals: Sequence[RetainedWal], *, planned: bool) -> None:
    """Print for `lockstep prune` the retained WALs that were deleted."""
    if wals:
        would = "would be " if planned else ""
        size = sum(wal.bytes for wal in wals) / 1e6
        _say(f"{would}deleted: {len(wals):,} kept WALs of {pipeline}, {size:,.1f} MB")


def show_pruning(pruning: Pruning) -> None:
    """Print for `lockstep prune` what was dropped, and what remains and why."""
    would = "would be " if pruning.dry_run else ""
    for part in pruning.dropped:
        _say(f"{would}dropped: {part.name}, {_times(part)}, {part.bytes / 1e6:.1f} MB")
    if not pruning.dropped:
        _say(f"nothing {would}dropped: no part of the history ends before {pruning.before.date()} and may go")
    if pruning.held_by is not None:
        _say(f"older parts stay for {escape(pruning.held_by)}, which isn't finished")
    if pruning.begun is not None:
        _say(f"{would}begun: a new part of the history{f', {pruning.begun}' if pruning.begun else ''}")
    for part in pruning.kept:
        _say(f"kept: {part.name}, {_times(part)}, {part.bytes / 1e6:.1f} MB")


def _times(part: HistoryPart) -> str:
    since = f"from {part.starts.date()}" if part.starts else "from the start"
    return f"{since} to {part.ends.date()}" if part.ends else since


def _say(line: str) -> None:
    """Print below a table, without wrapping, so that paths can be copied."""
    _out().print(f"  {line}", soft_wrap=True)


def _plainly(line: str) -> None:
    """Print without markup and wrapping."""
    _out().print(line, soft_wrap=True, markup=False, highlight=False)


def _justified(column: str) -> Literal["left", "right"]:
    right = ("epoch", "attempt", "age", "rows", "rows sealed", "rows shown", "MB")
    return "right" if column in right else "left"


def _epoch_row(status: EpochStatus, wide: bool) -> tuple[str, ...]:
    epoch = status.epoch
    colour = "green" if epoch.state in DECIDED else "red" if epoch.state is EpochState.VOID else "yellow"
    span = short_interval(epoch.interval) if epoch.interval else ""
    rows = ", ".join(f"{name} {count:,}" for name, count in status.rows.items())
    if status.rows and not wide:
        rows = f"{sum(status.rows.values()):,}"
    sinks = _sinks(status.participants, wide)
    state = f"[{colour}]{epoch.state}[/]" + (f" for {epoch.generation.replaces}" if epoch.generation else "")
    return (str(epoch.id), span, state, str(status.attempts), short_age(status.age), rows, sinks)


def _sinks(participants: Sequence[Participant], wide: bool) -> str:
    """States of the sinks: one count if all are equal; in a narrow terminal, how many have the most advanced state."""
    states = [str(participant.publication or participant.state) for participant in participants]
    if not states:
        return ""
    if len(set(states)) == 1:
        return f"{len(states)} {states[0]}"
    if wide:
        return ", ".join(f"{participant.sink} {at}" for participant, at in zip(participants, states, strict=True))
    furthest = max((participant.state for participant in participants), key=list(ParticipantState).index)
    return f"{sum(participant.state is furthest for participant in participants)} of {len(participants)} {furthest}"


def row_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """One JSON object per row, as the sinks of JSON write it. Values that they refuse, such as NaN, become text."""
    for batch in small_batches(iter(batches)):
        try:
            yield from (line.decode() for line in json_objects(batch, "the rows").to_pylist())
        except SinkRejected:
            for row in batch.to_pylist():
                yield json.dumps(_plain(row), ensure_ascii=False, default=str, separators=(",", ":"))


def _plain(value: Any) -> Json:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
