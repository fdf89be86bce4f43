"""The commands on epochs, pipelines, sinks and the ledger."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli._app import (
    DISAGREES_EXIT,
    MAX_COUNT,
    RETRYABLE_EXIT,
    STUCK_EXIT,
    DefinitionOption,
    EpochArgument,
    JsonOption,
    LedgerOption,
    PipelineArgument,
    ReasonOption,
    StagingOption,
    app,
    load_definition,
    print_result,
    reported,
    require_line,
    runtime_of,
)
from lockstep.cli._tables import (
    show_compaction,
    show_epochs,
    show_expired,
    show_finding,
    show_forgotten,
    show_history,
    show_overrides,
    show_problems,
    show_pruning,
    show_rebuilding,
    show_renumbering,
    show_verifications,
    showing_progress,
    visible,
)
from lockstep.connections.environment import EnvironmentConnections
from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import Epoch, SourceRange
from lockstep.errors import IllegalTransition, InvalidPipeline, UnknownEpoch
from lockstep.features.inputs import report_input
from lockstep.features.retained_wals import expire_wals
from lockstep.ledger import migrate as migrate_ledger
from lockstep.ledger.administration import KEEP
from lockstep.ledger.administration import prune as prune_history
from lockstep.ledger.report import SHOWN, YOUNGEST, EpochStatus, PipelineStatus, Report, to_json
from lockstep.observability import suggestions
from lockstep.operations.compact import compact as compact_table
from lockstep.operations.dev_stacks import ENVIRONMENT, find
from lockstep.operations.doctor import Finding, Severity, Surroundings, examine, mend
from lockstep.operations.exporter import Exporter, as_text, registry_of, serve
from lockstep.operations.override import clear_override
from lockstep.operations.override import override as override_sink
from lockstep.operations.rebuild import look as look_at_what_is_left
from lockstep.operations.rebuild import rebuild as rebuild_pipeline
from lockstep.operations.renumber import redefine as redefine_pipeline
from lockstep.operations.renumber import renumber as renumber_pipeline
from lockstep.operations.replan import release as release_epoch
from lockstep.operations.replan import replan as replan_epoch
from lockstep.operations.replan import void as void_epoch
from lockstep.operations.resolve import resolve as resolve_epoch
from lockstep.operations.verify import verify as verify_epoch
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort_epoch
from lockstep.protocol.planned_sinks import find_redefined
from lockstep.protocol.recover import forget as forget_pipeline
from lockstep.protocol.recover import recover as recover_pipeline
from lockstep.protocol.restage import restage as restage_epoch
from lockstep.protocol.runtime import Runtime
from lockstep.run import in_process
from lockstep.sinks.compacting import MIN_FILES
from lockstep.sources.base import OpenSource, SourceContext, planned_source
from lockstep.states import DECIDED, UNDECIDED, EpochState, Role


class StatedOutcome(StrEnum):
    """Outcome of a decided epoch in a sink, given by a person."""

    APPLIED = "applied"
    NOT_APPLIED = "not-applied"


@app.command(epilog="For instance: lockstep status flights --epoch 7")
def status(
    ledger: LedgerOption,
    pipeline: Annotated[str | None, typer.Argument(help="Name of one pipeline; default: all.")] = None,
    epoch: Annotated[int | None, typer.Option(help="The history of one epoch.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_COUNT,
            help=f"Number of newest epochs of each pipeline; default: {YOUNGEST}; of many pipelines {SHOWN:,} in all.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show each pipeline's epochs: states, ages, rows, what is stuck and why, files that arrived too late or changed.

    Exit code 1 if anything is stuck.
    """
    with reported(as_json):
        report = Report(ledger)
        if epoch is not None:
            if pipeline is None:
                raise typer.BadParameter("name the pipeline of the epoch", param_hint="--epoch")
            report.epoch(pipeline, epoch)  # raises `UnknownEpoch`
            print_result(as_json, report.history(pipeline, epoch), show_history)
            return
        statuses = (
            report.pipelines(limit=limit)
            if pipeline is None
            else [report.pipeline(pipeline, limit=YOUNGEST if limit is None else limit)]
        )
        if statuses == [None]:
            raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
        print_result(
            as_json,
            [with_input(pipeline_status, report.find_claimed_paths) for pipeline_status in statuses if pipeline_status],
            show_epochs,
        )
        if any(pipeline_status.stuck for pipeline_status in statuses if pipeline_status):
            raise typer.Exit(STUCK_EXIT)


@app.command(epilog="For instance: lockstep verify flights 7")
def verify(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    epoch: Annotated[int | None, typer.Argument(help="Number of one epoch; default: the newest ones.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="How many of the newest epochs.")] = 1000,
    as_json: JsonOption = False,
) -> None:
    """Read epochs back from their sinks; compare rows and digests with the sealed ones. Exit code 3 if any differs."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        verifications = [
            v for decided in _decided(runtime, ledger, epoch, limit) for v in verify_epoch(runtime, decided)
        ]
        print_result(as_json, verifications, show_verifications)
        if not all(v.agrees for v in verifications):
            raise typer.Exit(DISAGREES_EXIT)


@app.command(epilog="For instance: lockstep doctor flights --fix")
def doctor(
    pipeline: Annotated[str | None, typer.Argument(help="Name of one pipeline; default: all.")] = None,
    ledger: Annotated[str | None, typer.Option(envvar="LOCKSTEP_LEDGER", help="DSN of the ledger.")] = None,
    staging: Annotated[str | None, typer.Option(envvar="LOCKSTEP_STAGING", help="URI of staging storage.")] = None,
    spark: Annotated[str | None, typer.Option(envvar="LOCKSTEP_SPARK", help="Where Spark is, if known.")] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Apply safe fixes: create an empty ledger, recover pipelines.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check what an epoch needs from here: versions, Spark, staging, the ledger, sinks, stuck epochs and leftovers.

    One sentence and one command for each problem. Exit code 1 if an epoch would fail, or is stuck.
    """
    with reported(as_json):
        surroundings = Surroundings(ledger, staging, spark, EnvironmentConnections(), _find_definition)
        findings = _examined(surroundings, pipeline, as_json)
        once = {finding.command: finding for finding in findings if finding.command}
        mended = sum(mend(finding, surroundings) for finding in once.values()) if fix else 0
        if mended:
            if not as_json:
                typer.echo(f"fixed {mended}, checking again:")
            findings = _examined(surroundings, pipeline, as_json)
        if as_json:
            print_result(as_json, findings, None)
        if any(finding.severity is Severity.BROKEN for finding in findings):
            raise typer.Exit(STUCK_EXIT)


def _examined(surroundings: Surroundings, pipeline: str | None, as_json: bool) -> list[Finding]:
    """Findings, each printed as soon as it is there."""
    findings = []
    for finding in examine(surroundings, pipeline):
        findings.append(finding)
        if not as_json:
            show_finding(finding)
    return findings


def _find_definition(pipeline: str) -> Pipeline | None:
    """The definition as a task of this checkout would import it; None outside of a checkout."""
    try:
        return load_definition(pipeline, None)
    except InvalidPipeline as error:
        if isinstance(error.__cause__, ImportError | AttributeError | None):
            return None
        raise


@app.command(epilog="For instance: lockstep recover flights")
def recover(
    ledger: LedgerOption,
    staging: StagingOption,
    pipeline: Annotated[str | None, typer.Argument(help="Name of one pipeline; default: all.")] = None,
    recovery_grace: Annotated[
        float | None, typer.Option(help="Seconds without a heartbeat after which an undecided attempt is voided.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish decided epochs, void dead attempts, delete what they left. Exit code 75 if problems remain."""
    if recovery_grace is not None and not 0 <= recovery_grace <= MAX_COUNT:  # neither is true of nan
        raise typer.BadParameter(
            f"{recovery_grace} is not a number of seconds from 0 to {MAX_COUNT:,}", param_hint="--recovery-grace"
        )
    with reported(as_json):
        names = [pipeline] if pipeline else Report(ledger).recoverable()
        max_wait = timedelta(seconds=recovery_grace) if recovery_grace is not None else None
        reports = []
        for name in names:
            with runtime_of(name, ledger, staging) as runtime:
                reports.append(recover_pipeline(runtime, max_wait))
        print_result(as_json, reports, show_problems)
        if any(report.problems for report in reports):
            raise typer.Exit(RETRYABLE_EXIT)


@app.command(epilog="For instance: lockstep abort flights 7 --reason 'the run hangs'")
def abort(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Abort an undecided epoch's attempt and delete what it left; the next run tries the epoch again."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        before = runtime.ledger.epoch(pipeline, epoch)
        if before.state in DECIDED:
            raise IllegalTransition(
                f"can't abort {before}: it is {before.state}; the decision is final, every sink will show it"
            )
        _say(as_json, "aborted", abort_epoch(runtime, epoch, Role.OPERATOR, reason=reason))


@app.command(epilog="For instance: lockstep replan flights 7 --reason 'the file was corrected'")
def replan(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Freeze an undecided epoch anew: with the current range and the current sinks."""
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        _say(as_json, "replanned", replan_epoch(runtime, epoch, reason))


@app.command(epilog="For instance: lockstep redefine flights --reason 'another database'")
def redefine(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept a definition that shares no source and no sink with what ran under the pipeline's name so far."""
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        redefine_pipeline(runtime, reason)
        typer.echo(json.dumps({"redefined": pipeline}) if as_json else f"redefined: {pipeline}")


@app.command(epilog="For instance: lockstep renumber flights --reason 'the ledger was restored'")
def renumber(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    unprotected: Annotated[
        bool, typer.Option("--unprotected", help="Continue although rows that carry no range may be published twice.")
    ] = False,
    lacking: Annotated[
        list[str] | None,
        typer.Option(help="Name of a sink that lacks published epochs: continue with its target as it is."),
    ] = None,
    definition: Annotated[
        str | None,
        typer.Option(help="Where the pipeline is defined, module:name; needed if its sinks are newer than the ledger."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Continue after the ledger was restored: print the published epochs that it lacks, and number above all of them.

    With --lacking also after a sink was restored, emptied or moved: what it lacks isn't published again.
    """
    with reported(as_json):
        defined = load_definition(pipeline, definition) if definition else _find_definition(pipeline)
        with runtime_of(pipeline, ledger, staging, defined) as runtime:
            result = renumber_pipeline(runtime, reason, unprotected=unprotected, lacking=lacking or ())
        print_result(as_json, result, show_renumbering)


@app.command(epilog="For instance: lockstep rebuild flights --agree --reason 'the disk of the ledger was lost'")
def rebuild(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    plan: Annotated[bool, typer.Option("--plan", "--dry-run", help="Only show what would be written.")] = False,
    agree: Annotated[bool, typer.Option("--agree", help="Write it; you have checked what isn't proven.")] = False,
    reason: Annotated[str | None, typer.Option(callback=require_line, help="Why; stored in the ledger.")] = None,
    deployment: Annotated[
        str | None, typer.Option(help="Id of the lost ledger, if staging doesn't contain it.")
    ] = None,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild a lost ledger in a new, empty one from what sinks and staging prove; stop all tasks first.

    Exit code 1 if that is not enough to continue without doubling or losing rows: then nothing is written.
    """
    if plan is agree or agree is not bool(reason):
        raise typer.BadParameter("give either --plan, or --agree and a --reason")
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        result = look_at_what_is_left(runtime, deployment)
        if agree and not result.refused:
            result = rebuild_pipeline(runtime, str(reason), deployment)
        print_result(as_json, result.to_json() if as_json else result, partial(show_rebuilding, planned=plan))
        if result.refused:
            raise typer.Exit(STUCK_EXIT)


@app.command(epilog="For instance: lockstep void flights 7 --reason 'the source has no such day'")
def void(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Give up an undecided epoch's range permanently: no later run reads it."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        _say(as_json, "voided", void_epoch(runtime, epoch, reason))


@app.command(epilog="For instance: lockstep release flights 7 --manifest 0c9f6d6b2a41 --reason 'a strike, it is right'")
def release(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    manifest: Annotated[
        str,
        typer.Option(
            help="Required for a held epoch: the rows that were reviewed, by the first 12 digits of their manifest's "
            "hash, as `status` prints them."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Release an epoch that its audits hold, unchanged; refused if it was staged again after its rows were reviewed."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        _say(as_json, "released", release_epoch(runtime, epoch, reason, manifest))


@app.command(epilog="For instance: lockstep forget fligths --reason 'a typing error'")
def forget(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Stop listing a pipeline that never decided an epoch, such as a mistyped one. Its name stays reserved."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        report = forget_pipeline(runtime, reason)
        print_result(as_json, report, show_forgotten)
        if report.problems:
            raise typer.Exit(RETRYABLE_EXIT)


@app.command(epilog="For instance: lockstep resolve flights 7 warehouse applied --reason 'I counted its rows'")
def resolve(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    sink: Annotated[str, typer.Argument(help="Name of the sink.")],
    outcome: Annotated[StatedOutcome, typer.Argument(help="Whether the sink shows the epoch.")],
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Record whether a sink shows a decided epoch that neither handle nor marker can prove."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        _say(as_json, "resolved", resolve_epoch(runtime, epoch, sink, outcome.value, reason))


@app.command(epilog="For instance: lockstep override clicks kafka transaction_timeout=3600 --reason 'a slow day'")
def override(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    sink: Annotated[str | None, typer.Argument(help="Name of the sink; default: list all overrides.")] = None,
    settings: Annotated[list[str] | None, typer.Argument(help="Operational arguments, name=value.")] = None,
    reason: Annotated[str | None, typer.Option(callback=require_line, help="Why; stored in the ledger.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the override: the sink works as deployed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Change timeouts, shards or retries of a sink, also for epochs that are decided already."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        if sink is not None:
            if bool(settings) is clear or not reason:
                raise typer.BadParameter("give name=value or --clear, and a --reason")
            if clear:
                clear_override(runtime, sink, reason)
            else:
                override_sink(runtime, sink, settings or [], reason)
        runtime.ledger.recovery_grace(pipeline)  # raises `UnknownEpoch`
        print_result(as_json, runtime.ledger.overrides(pipeline), show_overrides)


@app.command(epilog="For instance: lockstep restage flights 7 --spark sc://localhost --reason 'a disk was lost'")
def restage(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    spark: Annotated[str, typer.Option(envvar="LOCKSTEP_SPARK", help="Where Spark is: sc://host:port, or a master.")],
    reason: ReasonOption,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stage a decided epoch again whose WAL is damaged; sinks use it only if its rows are the sealed ones."""
    with reported(as_json):
        defined = load_definition(pipeline, definition)
        with runtime_of(pipeline, ledger, staging, defined) as runtime:
            launch = in_process(defined, spark, runtime.connections)
            _say(as_json, "staged again", restage_epoch(runtime, epoch, launch, reason))


@app.command(epilog="For instance: lockstep compact flights lake --target-size 512MB --plan")
def compact(
    pipeline: PipelineArgument,
    sink: Annotated[str, typer.Argument(help="Name of the sink: a DeltaSink or an IcebergSink.")],
    ledger: LedgerOption,
    staging: StagingOption,
    target_size: Annotated[
        str,
        typer.Option(help="Approximate size of a new file, such as 512MB. Files of three quarters of it or more stay."),
    ] = "256MB",
    min_files: Annotated[
        int, typer.Option(min=2, help="Small files that a partition needs before it is rewritten.")
    ] = MIN_FILES,
    expire: Annotated[
        str | None,
        typer.Option(help="Also delete files that no table version newer than this consists of; such as 7d, 12h."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "--plan", help="Only show what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Rewrite the small files of published epochs into few, by one commit of the table; rows don't change.

    The old files stay below the table for readers of older versions, until --expire. Exit code 75 if another writer
    changed those files meanwhile, or is compacting the table.
    """
    size, retention = bytes_of(target_size), None if expire is None else duration_of(expire)
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        with showing_progress("files rewritten", hidden=as_json or dry_run) as progress:
            result = compact_table(
                runtime,
                sink,
                target_bytes=size,
                min_files=min_files,
                expire=retention,
                dry_run=dry_run,
                progress=progress,
            )
        print_result(as_json, result, partial(show_compaction, planned=dry_run))


@app.command(epilog="For instance: LOCKSTEP_LEDGER=postgresql://me@db/ledger lockstep migrate")
def migrate(ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Bring the ledger's schema up to date."""
    with reported(as_json):
        applied = migrate_ledger(ledger)
        typer.echo(json.dumps(applied) if as_json else f"applied: {', '.join(applied) or 'nothing, it is up to date'}")


@app.command(epilog="For instance: lockstep prune --keep 400 --dry-run")
def prune(
    ledger: LedgerOption,
    staging: Annotated[
        str | None, typer.Option(envvar="LOCKSTEP_STAGING", help="URI of staging storage, for retained WALs.")
    ] = None,
    keep: Annotated[int, typer.Option(min=1, max=100_000, help="Days of history to keep.")] = KEEP.days,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be dropped.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Drop old history of the ledger, by whole months; needs a login that owns its tables.

    Epochs, votes, claims and tokens stay, as does all history since the oldest unfinished epoch. With --staging also
    deletes retained WALs that are due.
    """
    with reported(as_json):
        pruning = prune_history(ledger, timedelta(days=keep), dry_run=dry_run)
        expired = _expire(ledger, staging, dry_run) if staging else {}
        if as_json:
            typer.echo(json.dumps(to_json(pruning) | {"wals": to_json(expired)}, default=str))
            return
        show_pruning(pruning)
        for pipeline, wals in expired.items():
            show_expired(pipeline, wals, planned=dry_run)


def _expire(ledger: str, staging: str, dry_run: bool) -> dict[str, list[RetainedWal]]:
    """The retained WALs that were deleted, or would be, by pipeline."""
    wals = {}
    for name in Report(ledger).recoverable():
        with runtime_of(name, ledger, staging) as runtime:
            wals[name] = runtime.ledger.expiring_wals(name) if dry_run else expire_wals(runtime, Role.OPERATOR)
    return wals


@app.command(epilog='For instance: eval "$(lockstep env)"')
def env(
    home: Annotated[
        Path | None,
        typer.Option(
            envvar="LOCKSTEP_HOME",
            help="Folder of the running stack; default: the one of this checkout, else the only one that runs.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print `export` lines for the running stack, without passwords. Use: eval "$(lockstep env)"."""
    with reported(as_json):
        variables: dict[str, str] = json.loads((find(home) / ENVIRONMENT).read_text())
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
        typer.echo(json.dumps(variables) if as_json else exports)


_TIMES = {"d": "days", "h": "hours", "m": "minutes"}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}


def bytes_of(size: str) -> int:
    """Parse '512MB', '1 GiB' or '100000'. Raises `typer.BadParameter`."""
    match = re.fullmatch(r"\s*(\d{1,12})\s*([KMG]I?)?B?\s*", size, re.I)
    if match is None or not int(match[1]):
        raise typer.BadParameter(f"{size!r} is not a size, such as 512MB or 1GiB", param_hint="--target-size")
    return int(match[1]) * _UNITS[(match[2] or "").upper()]


def duration_of(text: str) -> timedelta:
    """Parse '7d', '12 h' or '90m'. Raises `typer.BadParameter`."""
    match = re.fullmatch(r"\s*(\d{1,6})\s*([dhm])\s*", text, re.I)
    span = timedelta(**{_TIMES[match[2].lower()]: int(match[1])}) if match else None
    if span is None or span.days > 36_500:
        raise typer.BadParameter(f"{text!r} is not a duration, such as 7d or 12h", param_hint="--expire")
    return span


Claimed = Callable[[str, str, Iterable[str]], set[str]]  #: pipeline, source, paths → those that an epoch claims


def with_input(pipeline: PipelineStatus, find_claimed: Claimed) -> PipelineStatus:
    """The status with what happened to each epoch's input since, which the ledger doesn't know."""
    originals = [status.epoch for status in pipeline.epochs if status.epoch.generation is None]
    newest = max(originals, key=lambda status: status.id).plan if originals else None
    epochs = [_epoch_with_input(status, find_claimed) for status in pipeline.epochs]
    if newest is not None:
        epochs = [
            replace(status, redefined=find_redefined(status.epoch, newest.sinks, newest.reads)) for status in epochs
        ]
    return replace(pipeline, epochs=tuple(epochs))


def _epoch_with_input(status: EpochStatus, find_claimed: Claimed) -> EpochStatus:
    def open_source(name: str, planned: SourceRange) -> AbstractContextManager[OpenSource]:
        claimed = partial(find_claimed, status.epoch.pipeline, name)
        context = SourceContext(status.epoch.pipeline, name, claimed, EnvironmentConnections())
        return planned_source(name, planned.spec, None).opened(context)

    report = report_input(status.epoch, open_source)
    return replace(
        status, late=report.late, changed=report.changed, held_back=report.held_back, finished=report.finished
    )


def _decided(runtime: Runtime, ledger: str, epoch: int | None, limit: int) -> list[Epoch]:
    if epoch is not None:
        return [runtime.ledger.epoch(runtime.pipeline, epoch)]
    status = Report(ledger).pipeline(runtime.pipeline, limit=limit)
    if status is None:
        raise UnknownEpoch(f"the ledger has no pipeline {runtime.pipeline!r}")
    return sorted((s.epoch for s in status.epochs if s.epoch.state in DECIDED), key=lambda decided: decided.id)


def _say(as_json: bool, done: str, epoch: Epoch) -> None:
    next_step = ""
    if epoch.state in UNDECIDED:
        next_step = "; its next run goes on with it"
    elif epoch.state is EpochState.COMMITTED:
        next_step = f"; {suggestions.recover(epoch.pipeline)} publishes it"
    print_result(as_json, epoch, lambda result: typer.echo(visible(f"{done}: {result} is {result.state}{next_step}")))


PORT = 9877


@app.command(epilog="For instance: lockstep exporter --once")
def exporter(
    ledger: LedgerOption,
    host: Annotated[str, typer.Option(help="Address to listen on. There is no login: all who reach it can read.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")] = PORT,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=3600, help="Seconds that a scrape waits for the ledger; less than Prometheus waits."),
    ] = 8.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print once and exit: for the node exporter's text files.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Serve metrics of pipelines to Prometheus at http://127.0.0.1:9877/metrics: epochs, ages, lag, what is stuck.

    Reads only the ledger, at each scrape. With --json prints the same once, as JSON. Exit code 75 if --once can't reach
    the ledger.
    """
    with reported(as_json):
        exporter = Exporter(ledger, timeout)
        if as_json:
            print_result(True, exporter.measure(), None)
            return
        registry = registry_of(exporter)
        if once:
            typer.echo(as_text(registry), nl=False)
            if exporter.failure is not None:
                raise exporter.failure
            return
        try:
            listening, thread = serve(registry, host, port)
        except OSError as error:
            raise typer.BadParameter(f"can't listen at {host}:{port}: {error.strerror or error}") from error
        typer.echo(f"http://{host}:{listening}/metrics")
        thread.join()
