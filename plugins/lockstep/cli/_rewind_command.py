"""`lockstep savepoint rewind`: restate all that follows the epoch that a savepoint is of."""

from __future__ import annotations

from typing import Annotated

import typer

from lockstep.cli._commands import (
    DefinitionOption,
    JsonOption,
    LedgerOption,
    PipelineArgument,
    ReasonOption,
    StagingOption,
    load_definition,
    print_found,
    reported,
    runtime_of,
    savepoints,
)
from lockstep.cli._tables import show_restated
from lockstep.operations.rewind import rewind as rewind_to
from lockstep.pack import require_all_moved
from lockstep.run import asking, in_process, report_of


@savepoints.command(
    epilog="For instance: lockstep savepoint rewind clicks --from /mnt/clicks --spark 'local[*]' --reason 'doubled'"
)
def rewind(
    pipeline: PipelineArgument,
    source: Annotated[str, typer.Option("--from", help="Folder that holds a savepoint of this very pipeline.")],
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    spark: Annotated[
        str, typer.Option(envvar="LOCKSTEP_SPARK", help="Where Spark is: sc://host:port, or a master such as local[*].")
    ],
    request: Annotated[
        str | None,
        typer.Option(help="A name that tells this request from earlier ones for the same reason, such as '2026-11'."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Epochs staged side by side; default: one a core.")] = None,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restate all that follows the savepoint's epoch: with state as one epoch that starts from its state.

    Every sink has to be able to replace what it shows. Run again with the same reason it goes on with what isn't done.
    """
    with reported(as_json):
        defined = load_definition(pipeline, definition)
        with runtime_of(pipeline, ledger, staging, defined) as runtime:
            launch = in_process(defined, spark, runtime.connections)
            members = rewind_to(runtime, source, reason, launch, jobs, request, asking(spark))
            moved = [(one.epoch, one.already) for one in members if one.error is None and one.epoch is not None]
            print_found(as_json, [report_of(runtime, *one) for one in moved], show_restated)
            require_all_moved(members)
