"""Commands that replace published rows or carry state over: `lockstep restate`, `restore` and `savepoint`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from lockstep.cli._app import (
    DefinitionOption,
    JsonOption,
    LedgerOption,
    PipelineArgument,
    ReasonOption,
    StagingOption,
    app,
    load_definition,
    print_result,
    reported,
    runtime_of,
)
from lockstep.cli._tables import (
    show_restatable,
    show_restated,
    show_restorable,
    show_restored,
    show_savepoint,
)
from lockstep.epoch import Input, Interval
from lockstep.errors import InvalidPipeline
from lockstep.ledger.report import Report
from lockstep.operations.restate import find_restatable
from lockstep.operations.restate import plan as plan_restate
from lockstep.operations.restate import restate as restate_epochs
from lockstep.operations.restore import find_restorable
from lockstep.operations.restore import plan as plan_restore
from lockstep.operations.restore import restore as restore_epoch
from lockstep.operations.savepoint import export as export_savepoint
from lockstep.operations.savepoint import find_after, put_back_state, summarize
from lockstep.operations.savepoint import start as start_from_savepoint
from lockstep.protocol.pack import require_all_moved
from lockstep.run import asking, in_process, report_of

savepoints = typer.Typer(help="Export a pipeline's positions and state, or start from them.", no_args_is_help=True)
app.add_typer(savepoints, name="savepoint")


@app.command(epilog="For instance: lockstep restate flights --epoch 7 --reason 'a file was corrected' --plan")
def restate(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    epoch: Annotated[int | None, typer.Option(help="Number of an epoch of the range, such as the original.")] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="Start of the first interval, ISO 8601 with a time zone.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="End of the last interval.")] = None,
    savepoint: Annotated[
        str | None,
        typer.Option(help="Folder of a savepoint: restate all after its epoch; with state, as one epoch."),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(help="Name of the request, such as '2026-11', if an earlier one had the same reason."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "--plan", help="Only show the epochs, how long they took, and what refuses and why."),
    ] = False,
    spark: Annotated[
        str | None, typer.Option(envvar="LOCKSTEP_SPARK", help="Where Spark is: sc://host:port, or a master.")
    ] = None,
    reads: Annotated[
        Input | None,
        typer.Option("--input", help="fresh: current input (the default for intervals). frozen: the original input."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Epochs staged concurrently; default: one per core.")] = None,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read published ranges again and replace their rows in every sink, each range by one decision.

    With the same reason it continues with what isn't done and skips the rest; another reason, or another --request,
    restates everything again. Exit code 1 if --plan finds a refusal.
    """
    with reported(as_json):
        defined, interval = load_definition(pipeline, definition), _interval(epoch, since, until, savepoint)
        with runtime_of(pipeline, ledger, staging, defined) as runtime:
            epochs = find_after(runtime, savepoint) if savepoint else find_restatable(runtime, epoch, interval)
            if dry_run:
                planned = plan_restate(runtime, Report(ledger), epochs, reads)
                print_result(as_json, planned, show_restatable)
                raise typer.Exit(any(item.refusals for item in planned))
            if spark is None:
                raise InvalidPipeline("no Spark is given: use --spark sc://host:port, or a master such as local[*]")
            if savepoint:
                put_back_state(runtime, savepoint)
            launch = in_process(defined, spark, runtime.connections)
            members = restate_epochs(runtime, epochs, reason, launch, jobs, request, reads, asking(spark))
            moved = [(m.epoch, m.already) for m in members if m.error is None and m.epoch is not None]
            print_result(
                as_json, [report_of(runtime, moved_epoch, already) for moved_epoch, already in moved], show_restated
            )
            require_all_moved(members)


def _interval(epoch: int | None, since: str | None, until: str | None, savepoint: str | None) -> Interval | None:
    if [epoch is not None, since is not None or until is not None, savepoint is not None].count(True) != 1:
        raise typer.BadParameter("give either --epoch, or --from and --to, or --savepoint")
    if since is None and until is None:
        return None
    if since is None or until is None:
        raise typer.BadParameter("--from and --to go together")
    return Interval(_moment("--from", since), _moment("--to", until))


def _moment(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is {text!r}, not an ISO 8601 date and time") from error


@app.command(epilog="For instance: lockstep restore flights --epoch 7 --reason 'the corrected file was wrong' --plan")
def restore(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    epoch: Annotated[int, typer.Option(help="Number of the epoch to show again.")],
    generation: Annotated[
        int | None,
        typer.Option(min=0, help="Show the rows of this generation of the epoch's range instead; 0: the original."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "--plan", help="Only show what would replace what, and what refuses."),
    ] = False,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an earlier generation's rows again in every sink, by one decision; from its retained WAL, without Spark.

    With the same reason it continues what it began. Exit code 1 if --plan finds a refusal.
    """
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        current, target = find_restorable(runtime, epoch, generation)
        if dry_run:
            planned = plan_restore(runtime, current, target)
            print_result(as_json, planned, show_restorable)
            raise typer.Exit(bool(planned.refusals))
        member = restore_epoch(runtime, current, target, reason)
        require_all_moved([member])
        assert member.epoch is not None
        print_result(as_json, [report_of(runtime, member.epoch, member.already)], show_restored)


@savepoints.command(epilog="For instance: lockstep savepoint export clicks --to /mnt/savepoints/clicks")
def export(
    pipeline: PipelineArgument,
    to: Annotated[str, typer.Option("--to", help="Folder to write to: an absolute path or a URI.")],
    ledger: LedgerOption,
    staging: StagingOption,
    epoch: Annotated[int | None, typer.Option(help="Number of a decided epoch; default: the last one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the positions up to which an epoch was read, and its state if any, to a folder."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        print_result(as_json, summarize(export_savepoint(runtime, to, epoch)), show_savepoint)


@savepoints.command(epilog="For instance: lockstep savepoint start clicks --from /mnt/savepoints/clicks")
def start(
    pipeline: PipelineArgument,
    source: Annotated[str, typer.Option("--from", help="Folder that holds a savepoint.")],
    ledger: LedgerOption,
    staging: StagingOption,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a pipeline without epochs continue where a savepoint ends."""
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        print_result(as_json, summarize(start_from_savepoint(runtime, source)), show_savepoint)
