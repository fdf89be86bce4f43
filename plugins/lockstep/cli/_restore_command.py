"""`lockstep restore`: have the rows of an earlier generation shown again, from its kept WAL."""

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
    app,
    load_definition,
    print_found,
    reported,
    runtime_of,
)
from lockstep.cli._tables import show_restorable, show_restored
from lockstep.operations.restore import find_restorable, plan
from lockstep.operations.restore import restore as restore_epoch
from lockstep.protocol.pack import require_all_moved
from lockstep.run import report_of


@app.command(epilog="For instance: lockstep restore flights --epoch 7 --reason 'the corrected file was wrong' --plan")
def restore(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    reason: ReasonOption,
    epoch: Annotated[int, typer.Option(help="Number of the epoch whose rows are to be shown again.")],
    generation: Annotated[
        int | None,
        typer.Option(min=0, help="In place of that epoch's: rows of this generation of its range; 0: the original."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "--plan", help="Only show what would be shown in place of what, and what refuses."),
    ] = False,
    definition: DefinitionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an earlier generation's rows again in every sink, by one decision; from its kept WAL, without Spark.

    Run again with the same reason it goes on with what it began. Exit code 1 if --plan finds that it would be refused.
    """
    with reported(as_json), runtime_of(pipeline, ledger, staging, load_definition(pipeline, definition)) as runtime:
        current, wanted = find_restorable(runtime, epoch, generation)
        if dry_run:
            planned = plan(runtime, current, wanted)
            print_found(as_json, planned, show_restorable)
            raise typer.Exit(bool(planned.refusals))
        member = restore_epoch(runtime, current, wanted, reason)
        require_all_moved([member])
        assert member.epoch is not None
        print_found(as_json, [report_of(runtime, member.epoch, member.already)], show_restored)
