"""`lockstep restate`: have what is published read again, and its rows replaced."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from lockstep.cli._commands import (
    DefinitionOption,
    JsonOption,
    LedgerOption,
    PipelineArgument,
    ReasonOption,
    StagingOption,
    app,
    load_definition,
    print_found,
    reported,
    runtime_of,
)
from lockstep.cli._tables import show_restatable, show_restated
from lockstep.epoch import Input, Interval
from lockstep.errors import InvalidPipeline
from lockstep.ledger.report import Report
from lockstep.operations.restate import find_restatable, plan
from lockstep.operations.restate import restate as restate_epochs
from lockstep.operations.savepoint import find_after, put_back_state
from lockstep.protocol.pack import require_all_moved
from lockstep.run import asking, in_process, report_of


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
        typer.Option(help="Folder of a savepoint: all that follows its epoch, with state as one epoch from its state."),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(help="A name that tells this request from earlier ones for the same reason, such as '2026-11'."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "--plan", help="Only show which epochs, what refuses and why, how long they took."),
    ] = False,
    spark: Annotated[
        str | None, typer.Option(envvar="LOCKSTEP_SPARK", help="Where Spark is: sc://host:port, or a master.")
    ] = None,
    reads: Annotated[
        Input | None,
        typer.Option("--input", help="fresh: what is there now (the default for intervals). frozen: what was read."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Epochs staged side by side; default: one a core.")] = None,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read published ranges again, and replace their rows in every sink; each range by one decision.

    Run again with the same reason it goes on with what isn't done, and leaves the rest; another reason, or another
    --request, restates all of it anew. Exit code 1 if --plan finds that it would be refused.
    """
    with reported(as_json):
        defined, interval = load_definition(pipeline, definition), _interval(epoch, since, until, savepoint)
        with runtime_of(pipeline, ledger, staging, defined) as runtime:
            found = find_after(runtime, savepoint) if savepoint else find_restatable(runtime, epoch, interval)
            if dry_run:
                planned = plan(runtime, Report(ledger), found, reads)
                print_found(as_json, planned, show_restatable)
                raise typer.Exit(any(one.refusals for one in planned))
            if spark is None:
                raise InvalidPipeline("say where Spark is: --spark sc://host:port, or a master such as local[*]")
            if savepoint:
                put_back_state(runtime, savepoint)
            launch = in_process(defined, spark, runtime.connections)
            members = restate_epochs(runtime, found, reason, launch, jobs, request, reads, asking(spark))
            moved = [(one.epoch, one.already) for one in members if one.error is None and one.epoch is not None]
            print_found(as_json, [report_of(runtime, *one) for one in moved], show_restated)
            require_all_moved(members)


def _interval(epoch: int | None, since: str | None, until: str | None, savepoint: str | None) -> Interval | None:
    if [epoch is not None, since is not None or until is not None, savepoint is not None].count(True) != 1:
        raise typer.BadParameter("say either --epoch, or --from and --to, or --savepoint")
    if since is None and until is None:
        return None
    if since is None or until is None:
        raise typer.BadParameter("--from and --to go together")
    return Interval(_moment("--from", since), _moment("--to", until))


def _moment(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is {text!r}, no ISO 8601 date and time") from error
