"""`lockstep`: look at epochs, and get stuck ones going again.

The ledger, staging and each sink's connection come from options or from the environment: LOCKSTEP_LEDGER,
LOCKSTEP_STAGING, and LOCKSTEP_<ID> for the connection of that id (LOCKSTEP_CONNECTION_<ID> where the short name means
something else, such as LOCKSTEP_STAGING; passwords through PGPASSFILE). `lockstep env` prints
them for the running stack. Exit codes: 0 done, 1 an error for a person, or `status` found something stuck, 2 wrong
usage, 3 rows disagree, 75 try again later.
"""

from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from traceback import TracebackException, extract_tb
from typing import Annotated, Any

import typer

from lockstep.cli import stacks
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
    show_savepoint,
    show_verifications,
    showing_progress,
    visible,
)
from lockstep.connections.environment import EnvironmentConnections
from lockstep.definition.wal_retention import RetainedWal
from lockstep.distribution import __version__
from lockstep.epoch import Epoch, SourceRange
from lockstep.errors import IllegalTransition, InvalidPipeline, LockstepError, Retryable, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.ledger import migrate as migrate_ledger
from lockstep.ledger.administration import KEEP
from lockstep.ledger.administration import prune as prune_history
from lockstep.ledger.report import SHOWN, YOUNGEST, EpochStatus, PipelineStatus, Report, to_json
from lockstep.observability import log_context, suggestions
from lockstep.operations.compact import compact as compact_table
from lockstep.operations.doctor import Finding, Severity, Surroundings, examine, mend
from lockstep.operations.override import clear_override
from lockstep.operations.override import override as override_sink
from lockstep.operations.rebuild import look as look_at_what_is_left
from lockstep.operations.rebuild import rebuild as rebuild_pipeline
from lockstep.operations.redefine import redefine as redefine_pipeline
from lockstep.operations.renumber import renumber as renumber_pipeline
from lockstep.operations.replan import release as release_epoch
from lockstep.operations.replan import replan as replan_epoch
from lockstep.operations.replan import void as void_epoch
from lockstep.operations.resolve import resolve as resolve_epoch
from lockstep.operations.savepoint import export as export_savepoint
from lockstep.operations.savepoint import start as start_from_savepoint
from lockstep.operations.savepoint import summarize
from lockstep.operations.verify import verify as verify_epoch
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort_epoch
from lockstep.protocol.input_report import report_input
from lockstep.protocol.planned_sinks import find_redefined
from lockstep.protocol.recover import forget as forget_pipeline
from lockstep.protocol.recover import recover as recover_pipeline
from lockstep.protocol.restage import restage as restage_epoch
from lockstep.protocol.retained_wals import expire_wals
from lockstep.protocol.runtime import Runtime
from lockstep.run import in_process
from lockstep.sinks.compacting import MIN_FILES
from lockstep.sources.base import Source, SourceContext, planned_source
from lockstep.sources.open_source import OpenSource
from lockstep.states import DECIDED, UNDECIDED, EpochState, Role
from lockstep.wal.staging import Staging

_log = logging.getLogger(__name__)

app = typer.Typer(name="lockstep", help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)
savepoints = typer.Typer(help="Take a pipeline's positions and state out, or begin with them.", no_args_is_help=True)
app.add_typer(savepoints, name="savepoint")

TERMINAL_EXIT = STUCK_EXIT = 1
DISAGREES_EXIT, RETRYABLE_EXIT = 3, 75  # 75: EX_TEMPFAIL of sysexits.h
MOST = 1_000_000_000  #: of whatever is counted

LedgerOption = Annotated[str, typer.Option("--ledger", envvar="LOCKSTEP_LEDGER", help="DSN of the ledger.")]
StagingOption = Annotated[str, typer.Option("--staging", envvar="LOCKSTEP_STAGING", help="URI of staging storage.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def require_line(reason: str | None) -> str | None:
    """A reason that fits into a history that people read. Raises `typer.BadParameter`."""
    if reason is not None and (not reason.strip() or not reason.isprintable() or len(reason) > 1000):
        raise typer.BadParameter("it has to be one line of printable text, of at most 1,000 characters")
    return reason


ReasonOption = Annotated[str, typer.Option("--reason", callback=require_line, help="Why; kept in the history.")]
PipelineArgument = Annotated[str, typer.Argument(help="Name of the pipeline.")]
DefinitionOption = Annotated[
    str | None, typer.Option(help="Where the pipeline is defined, module:name; default: spark_apps.<pipeline>.")
]
EpochArgument = Annotated[int, typer.Argument(help="Number of the epoch; see `lockstep status`.")]


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lockstep {__version__}")
        raise typer.Exit


class LogFormat(StrEnum):
    """How log lines come."""

    TEXT = "text"
    JSON = "json"


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(envvar=log_context.FORMAT, help="json: log lines, and errors, as JSON on stderr, with fields."),
    ] = LogFormat.TEXT,
) -> None:
    if log_format is LogFormat.JSON:
        log_context.log_json()
    if not sys.stdout:  # it is closed: what is opened next would be file 1, and be given the answer
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


class Word(StrEnum):
    """What a person says of a decided epoch whose outcome in a sink is unknown."""

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
            max=MOST,
            help=f"The youngest epochs of each pipeline; default: {YOUNGEST}, of many pipelines {SHOWN:,} in all.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show each pipeline's epochs: states, ages, rows, what is stuck and why, files that came too late or changed.

    Exit code 1 if anything is stuck.
    """
    with reported(as_json):
        report = Report(ledger)
        if epoch is not None:
            if pipeline is None:
                raise typer.BadParameter("name the pipeline whose epoch it is", param_hint="--epoch")
            report.epoch(pipeline, epoch)  # raises for one that isn't there
            print_found(as_json, report.history(pipeline, epoch), show_history)
            return
        found = (
            report.pipelines(limit=limit)
            if pipeline is None
            else [report.pipeline(pipeline, limit=YOUNGEST if limit is None else limit)]
        )
        if found == [None]:
            raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
        print_found(as_json, [with_input(one, report.find_claimed_paths) for one in found if one], show_epochs)
        if any(one.stuck for one in found if one):
            raise typer.Exit(STUCK_EXIT)


@app.command(epilog="For instance: lockstep verify flights 7")
def verify(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    epoch: Annotated[int | None, typer.Argument(help="Number of one epoch; default: the youngest ones.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many of the youngest epochs.")] = 1000,
    as_json: JsonOption = False,
) -> None:
    """Read epochs back from their sinks; compare rows and digests with what was sealed. Exit code 3 if any differs."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        found = [v for one in _decided(runtime, ledger, epoch, limit) for v in verify_epoch(runtime, one)]
        print_found(as_json, found, show_verifications)
        if not all(v.agrees for v in found):
            raise typer.Exit(DISAGREES_EXIT)


@app.command(epilog="For instance: lockstep doctor flights --fix")
def doctor(
    pipeline: Annotated[str | None, typer.Argument(help="Name of one pipeline; default: all.")] = None,
    ledger: Annotated[str | None, typer.Option(envvar="LOCKSTEP_LEDGER", help="DSN of the ledger.")] = None,
    staging: Annotated[str | None, typer.Option(envvar="LOCKSTEP_STAGING", help="URI of staging storage.")] = None,
    spark: Annotated[str | None, typer.Option(envvar="LOCKSTEP_SPARK", help="Where Spark is, if it is known.")] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Do what is safe: make an empty ledger, recover pipelines.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look at all that an epoch needs from here: versions, Spark, staging, the ledger, sinks, what is stuck or left.

    One sentence and one command for each thing amiss. Exit code 1 if an epoch would fail, or is stuck.
    """
    with reported(as_json):
        around = Surroundings(ledger, staging, spark, EnvironmentConnections(), _find_definition)
        found = _examined(around, pipeline, as_json)
        once = {finding.command: finding for finding in found if finding.command}
        mended = sum(mend(finding, around) for finding in once.values()) if fix else 0
        if mended:
            if not as_json:
                typer.echo(f"mended {mended}, once more:")
            found = _examined(around, pipeline, as_json)
        if as_json:
            print_found(as_json, found, None)
        if any(one.severity is Severity.BROKEN for one in found):
            raise typer.Exit(STUCK_EXIT)


def _examined(around: Surroundings, pipeline: str | None, as_json: bool) -> list[Finding]:
    """Each finding shown as soon as it is there."""
    found = []
    for one in examine(around, pipeline):
        found.append(one)
        if not as_json:
            show_finding(one)
    return found


def _find_definition(pipeline: str) -> Pipeline | None:
    """As a task of the checkout would find it; None where this isn't one."""
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
        float | None, typer.Option(help="Seconds until an idle undecided attempt is void.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish decided epochs, void dead attempts, delete what they left. Exit code 75 if problems are left."""
    if recovery_grace is not None and not 0 <= recovery_grace <= MOST:  # neither is true of nan
        raise typer.BadParameter(
            f"{recovery_grace} is no number of seconds from 0 to {MOST:,}", param_hint="--recovery-grace"
        )
    with reported(as_json):
        names = [pipeline] if pipeline else Report(ledger).recoverable()
        max_wait = timedelta(seconds=recovery_grace) if recovery_grace is not None else None
        reports = []
        for name in names:
            with runtime_of(name, ledger, staging) as runtime:
                reports.append(recover_pipeline(runtime, max_wait))
        print_found(as_json, reports, show_problems)
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
    """Abort an undecided epoch's attempt and remove what it left; the next run tries the epoch again."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        before = runtime.ledger.epoch(pipeline, epoch)
        if before.state in DECIDED:
            raise IllegalTransition(
                f"can't abort {before}: it is {before.state}; the decision stands, every sink will show it"
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
    """Freeze an undecided epoch anew: today's range, today's sinks."""
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
        bool, typer.Option("--unprotected", help="Go on though rows that carry no range may be shown again.")
    ] = False,
    lacking: Annotated[
        list[str] | None,
        typer.Option(help="Name of a sink that lacks what was published there: go on with its target as it is."),
    ] = None,
    definition: Annotated[
        str | None,
        typer.Option(help="Where the pipeline is defined, module:name, if its sinks are newer than the ledger."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Go on after the ledger was restored: print the published epochs that it lacks, and number above all of them.

    With --lacking also after a sink was restored, emptied or moved: what it lacks isn't published again.
    """
    with reported(as_json):
        defined = load_definition(pipeline, definition) if definition else _find_definition(pipeline)
        with runtime_of(pipeline, ledger, staging, defined) as runtime:
            found = renumber_pipeline(runtime, reason, unprotected=unprotected, lacking=lacking or ())
        print_found(as_json, found, show_renumbering)


@app.command(epilog="For instance: lockstep rebuild flights --agree --reason 'the disk of the ledger was lost'")
def rebuild(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    plan: Annotated[bool, typer.Option("--plan", "--dry-run", help="Only show what would be written.")] = False,
    agree: Annotated[bool, typer.Option("--agree", help="Write it: you have checked what isn't proven.")] = False,
    reason: Annotated[str | None, typer.Option(callback=require_line, help="Why; kept in the ledger.")] = None,
    deployment: Annotated[
        str | None, typer.Option(help="Id of the lost ledger, where staging doesn't tell which one it was.")
    ] = None,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild a lost ledger in a new, empty one from what sinks and staging prove; stop all tasks first.

    Exit code 1 where that is too little to go on without doubling or losing rows: then nothing is written.
    """
    if plan is agree or agree is not bool(reason):
        raise typer.BadParameter("say --plan, or --agree and a --reason")
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        found = look_at_what_is_left(runtime, deployment)
        if agree and not found.refused:
            found = rebuild_pipeline(runtime, str(reason), deployment)
        print_found(as_json, found.to_json() if as_json else found, partial(show_rebuilding, planned=plan))
        if found.refused:
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
    """Give up an undecided epoch's range for good: no later run reads it."""
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
            help="Needed for a held epoch: which rows were looked at, 12 digits of their manifest's hash, as `status` "
            "tells them."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Release an epoch that its audits hold, as it is; refused if it was staged again after its rows were looked at."""
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
    """Stop listing a pipeline that never decided an epoch, such as a mistyped one. Its name stays taken."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        report = forget_pipeline(runtime, reason)
        print_found(as_json, report, show_forgotten)
        if report.problems:
            raise typer.Exit(RETRYABLE_EXIT)


@app.command(epilog="For instance: lockstep resolve flights 7 warehouse applied --reason 'I counted its rows'")
def resolve(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    sink: Annotated[str, typer.Argument(help="Name of the sink.")],
    word: Annotated[Word, typer.Argument(help="Whether the sink shows the epoch.")],
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    as_json: JsonOption = False,
) -> None:
    """Record whether a sink shows a decided epoch, where neither handle nor marker can prove it."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        _say(as_json, "resolved", resolve_epoch(runtime, epoch, sink, word.value, reason))


@app.command(epilog="For instance: lockstep override clicks kafka transaction_timeout=3600 --reason 'a slow day'")
def override(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    sink: Annotated[str | None, typer.Argument(help="Name of the sink; default: list every override so far.")] = None,
    settings: Annotated[list[str] | None, typer.Argument(help="Operational arguments, name=value.")] = None,
    reason: Annotated[str | None, typer.Option(callback=require_line, help="Why; kept in the ledger.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take it back: the sink works as it is deployed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Change timeouts, shards or tries of a sink, for epochs that are already decided, too."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        if sink is not None:
            _override(runtime, sink, settings or [], reason, clear)
        runtime.ledger.recovery_grace(pipeline)  # raises for one that isn't there
        print_found(as_json, runtime.ledger.overrides(pipeline), show_overrides)


def _override(runtime: Runtime, sink: str, settings: list[str], reason: str | None, clear: bool) -> None:
    if bool(settings) is clear or not reason:
        raise typer.BadParameter("say name=value or --clear, and a --reason")
    if clear:
        clear_override(runtime, sink, reason)
    else:
        override_sink(runtime, sink, settings, reason)


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
    """Stage a decided epoch again whose WAL is damaged; sinks go on from it only if the rows are the sealed ones."""
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
        str, typer.Option(help="Of a new file, about; such as 512MB. Files from three quarters of it on stay.")
    ] = "256MB",
    min_files: Annotated[
        int, typer.Option(min=2, help="Small files that a partition needs before it is written anew.")
    ] = MIN_FILES,
    expire: Annotated[
        str | None,
        typer.Option(help="Also delete files that no version of so long ago, or later, consists of; such as 7d, 12h."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "--plan", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Rewrite the small files of published epochs into few, by one commit of the table; rows stay as they are.

    What it was made of stays below the table, for whoever reads older versions, until --expire. Exit code 75 if others
    changed those files meanwhile, or compact the table at this moment.
    """
    size, retention = bytes_of(target_size), None if expire is None else duration_of(expire)
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        with showing_progress("files written anew", hidden=as_json or dry_run) as progress:
            found = compact_table(
                runtime,
                sink,
                target_bytes=size,
                min_files=min_files,
                expire=retention,
                dry_run=dry_run,
                progress=progress,
            )
        print_found(as_json, found, partial(show_compaction, planned=dry_run))


@savepoints.command(epilog="For instance: lockstep savepoint export clicks --to /mnt/savepoints/clicks")
def export(
    pipeline: PipelineArgument,
    to: Annotated[str, typer.Option("--to", help="Folder to write to: an absolute path, or a URI.")],
    ledger: LedgerOption,
    staging: StagingOption,
    epoch: Annotated[int | None, typer.Option(help="Number of a decided epoch; default: the last one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the positions an epoch was read up to, and its state if it has any, to a folder of its own."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        print_found(as_json, summarize(export_savepoint(runtime, to, epoch)), show_savepoint)


@savepoints.command(epilog="For instance: lockstep savepoint start clicks --from /mnt/savepoints/clicks")
def start(
    pipeline: PipelineArgument,
    source: Annotated[str, typer.Option("--from", help="Folder that holds a savepoint.")],
    ledger: LedgerOption,
    staging: StagingOption,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a pipeline that has no epoch yet go on where a savepoint ends."""
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        print_found(as_json, summarize(start_from_savepoint(runtime, source)), show_savepoint)


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
        str | None, typer.Option(envvar="LOCKSTEP_STAGING", help="URI of staging storage, for kept WALs.")
    ] = None,
    keep: Annotated[int, typer.Option(min=1, max=100_000, help="Days of history that are kept.")] = KEEP.days,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be dropped.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Drop old history of the ledger, by whole months; needs a login that owns its tables.

    Epochs, votes, claims and tokens stay, and so does all history from the oldest epoch on that isn't finished. Where
    staging is known kept WALs that are due go as well.
    """
    with reported(as_json):
        found = prune_history(ledger, timedelta(days=keep), dry_run=dry_run)
        expired = _expire(ledger, staging, dry_run) if staging else {}
        if as_json:
            typer.echo(json.dumps(to_json(found) | {"wals": to_json(expired)}, default=str))
            return
        show_pruning(found)
        for pipeline, wals in expired.items():
            show_expired(pipeline, wals, planned=dry_run)


def _expire(ledger: str, staging: str, dry_run: bool) -> dict[str, list[RetainedWal]]:
    """By pipeline, the kept WALs that went, or would."""
    found = {}
    for name in Report(ledger).recoverable():
        with runtime_of(name, ledger, staging) as runtime:
            found[name] = runtime.ledger.expiring_wals(name) if dry_run else expire_wals(runtime, Role.OPERATOR)
    return found


@app.command(epilog='For instance: eval "$(lockstep env)"')
def env(
    home: Annotated[
        Path | None,
        typer.Option(
            envvar="LOCKSTEP_HOME",
            help="Where the running stack keeps what it has; default: of this checkout, else the only one that runs.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print `export` lines for the running stack; no passwords in them. Use: eval "$(lockstep env)"."""
    with reported(as_json):
        found: dict[str, str] = json.loads((stacks.find(home) / stacks.ENVIRONMENT).read_text())
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in found.items())
        typer.echo(json.dumps(found) if as_json else exports)


_TIMES = {"d": "days", "h": "hours", "m": "minutes"}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}


def bytes_of(size: str) -> int:
    """Of '512MB', '1 GiB', '100000'. Raises `typer.BadParameter`."""
    found = re.fullmatch(r"\s*(\d{1,12})\s*([KMG]I?)?B?\s*", size, re.I)
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{size!r} is no size: say 512MB or 1GiB", param_hint="--target-size")
    return int(found[1]) * _UNITS[(found[2] or "").upper()]


def duration_of(text: str) -> timedelta:
    """Of '7d', '12 h', '90m'. Raises `typer.BadParameter`."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([dhm])\s*", text, re.I)
    span = timedelta(**{_TIMES[found[2].lower()]: int(found[1])}) if found else None
    if span is None or span.days > 36_500:
        raise typer.BadParameter(f"{text!r} is no time: say 7d or 12h", param_hint="--expire")
    return span


@contextmanager
def runtime_of(name: str, ledger: str, staging: str, definition: Pipeline | None = None) -> Iterator[Runtime]:
    with closing(Ledger(ledger)) as opened:
        yield Runtime(name, opened, Staging(staging), EnvironmentConnections(), definition)


Claimed = Callable[[str, str, Iterable[str]], set[str]]  #: pipeline, source, paths → those that some epoch owns


def with_input(found: PipelineStatus, claimed_by: Claimed) -> PipelineStatus:
    """The same with what became of each epoch's input, which the ledger can't know."""
    originals = [one.epoch for one in found.epochs if one.epoch.generation is None]
    newest = max(originals, key=lambda one: one.id).plan if originals else None
    epochs = [_epoch_with_input(one, claimed_by) for one in found.epochs]
    if newest is not None:
        epochs = [replace(one, redefined=find_redefined(one.epoch, newest.sinks, newest.reads)) for one in epochs]
    return replace(found, epochs=tuple(epochs))


def _epoch_with_input(found: EpochStatus, claimed_by: Claimed) -> EpochStatus:
    def open_source(name: str, planned: SourceRange) -> AbstractContextManager[OpenSource]:
        claimed = partial(claimed_by, found.epoch.pipeline, name)
        context = SourceContext(found.epoch.pipeline, name, claimed, EnvironmentConnections())
        return _source_to_report(name, planned).opened(context)

    told = report_input(found.epoch, open_source)
    return replace(found, late=told.late, changed=told.changed, held_back=told.held_back, finished=told.finished)


def _source_to_report(name: str, planned: SourceRange) -> Source:
    """No definition is at hand: where the plan doesn't say what the source is, or it is gone, its position has to."""
    return planned_source(name, planned.spec, None)


def _decided(runtime: Runtime, ledger: str, epoch: int | None, limit: int) -> list[Epoch]:
    if epoch is not None:
        return [runtime.ledger.epoch(runtime.pipeline, epoch)]
    found = Report(ledger).pipeline(runtime.pipeline, limit=limit)
    if found is None:
        raise UnknownEpoch(f"the ledger has no pipeline {runtime.pipeline!r}")
    return sorted((s.epoch for s in found.epochs if s.epoch.state in DECIDED), key=lambda one: one.id)


def load_definition(pipeline: str, definition: str | None) -> Pipeline:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: definitions stand in the checkout, not in site-packages
    reference = definition or f"spark_apps.{pipeline}:pipeline"
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name or "pipeline")
        if isinstance(found, Pipeline) and found.name == pipeline:
            return found
    except (LockstepError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever a module may do
        frames = [at for at in extract_tb(error.__traceback__)[1:] if not re.search("^<|/lib/python", at.filename)]
        place = "".join(f" in {at.filename}, line {at.lineno}" for at in frames[-1:])
        text = " ".join(str(TracebackException.from_exception(error)).split())  # even where `str(error)` raises
        what = f"{type(error).__name__}: {text}{place}"
        raise InvalidPipeline(f"{reference} can't be imported: {what}; say --definition module:name") from error
    raise InvalidPipeline(f"{reference} is not pipeline {pipeline!r}")


def _say(as_json: bool, done: str, epoch: Epoch) -> None:
    left = ""
    if epoch.state in UNDECIDED:
        left = "; its next run goes on with it"
    elif epoch.state is EpochState.COMMITTED:
        left = f"; {suggestions.recover(epoch.pipeline)} publishes it"
    print_found(as_json, epoch, lambda one: typer.echo(visible(f"{done}: {one} is {one.state}{left}")))


def print_found(as_json: bool, value: Any, show: Any) -> None:
    if as_json:
        typer.echo(json.dumps(to_json(value), default=str))
    else:
        show(value)


@contextmanager
def reported(as_json: bool) -> Iterator[None]:
    """One line for an expected error, on stderr, and an exit code that tells whether to try again."""
    try:
        yield
        sys.stdout.flush()
    except LockstepError as error:
        kind = type(error).__name__
        if as_json:
            typer.echo(json.dumps({"error": kind, "message": str(error)}), err=True)
        elif log_context.logs_json():
            _log.error("%s: %s", kind, error)
        else:
            typer.echo(visible(f"{kind}: {error}"), err=True)
        raise typer.Exit(RETRYABLE_EXIT if isinstance(error, Retryable) else TERMINAL_EXIT) from error
    except UnicodeEncodeError as error:  # of an argument's bytes Python makes half surrogate pairs; none is quoted
        typer.echo(f"an argument or the answer has text that isn't {error.encoding}: set PYTHONUTF8=1", err=True)
        raise typer.Exit(TERMINAL_EXIT) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        with suppress(OSError, ValueError):  # or the interpreter would try once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        typer.echo(f"the answer can't be written to the standard output: {error.strerror}", err=True)
        raise typer.Exit(TERMINAL_EXIT) from error
