"""`lockstep wal list`, `wal show`, `lockstep quarantine` and `lockstep diff`: what was sealed, as a log."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lockstep.cli._app import (
    DISAGREES_EXIT,
    MAX_COUNT,
    EpochArgument,
    JsonOption,
    LedgerOption,
    PipelineArgument,
    StagingOption,
    app,
    print_result,
    reported,
    runtime_of,
)
from lockstep.cli._tables import row_lines, show_diff, show_quarantine, show_rows, show_wals, showing_progress
from lockstep.epoch import Json
from lockstep.ledger.report import to_json
from lockstep.operations.quarantine import find_quarantine, open_quarantined
from lockstep.operations.wal_diff import WalDiff
from lockstep.operations.wal_diff import diff as diff_wals
from lockstep.operations.wal_log import SHOWN, LoggedWal, WalLog, list_wals, open_output, read_rows

wals = typer.Typer(help="Look into sealed WALs: of epochs under way, and those that are kept.", no_args_is_help=True)
app.add_typer(wals, name="wal")

OutputArgument = Annotated[str, typer.Argument(help="Name of an output of the transform.")]
LimitOption = Annotated[int, typer.Option(min=0, max=MAX_COUNT, help="How many rows; 0: all.")]
WhereOption = Annotated[str | None, typer.Option(help="SQL condition over the columns; needs the extra duckdb.")]


@wals.command("list", epilog="For instance: lockstep wal list flights")
def list_(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    limit: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="How many, the youngest epochs first.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Name the sealed WALs that are there, with their rows and bytes, and how long they stay."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        found = list_wals(runtime, limit)
        print_result(as_json, _plain_log(found) if as_json else found, show_wals)


@wals.command(epilog="For instance: lockstep wal show flights 7 delays --where 'minutes > 60' --limit 5")
def show(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    output: OutputArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    where: WhereOption = None,
    limit: LimitOption = SHOWN,
    as_json: JsonOption = False,
) -> None:
    """Print sealed rows of one output, from files that are what the manifest says. With --json an object a line."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        batches = open_output(runtime, epoch, output)
        found = read_rows(batches, where, limit or None)
        if not as_json:
            show_rows(found, batches.schema)
            return
        for line in row_lines(found):
            typer.echo(line)


@app.command(epilog="For instance: lockstep quarantine flights 7 delays --limit 5")
def quarantine(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    output: Annotated[str | None, typer.Argument(help="Name of an output: show its rows; default: count all.")] = None,
    where: WhereOption = None,
    limit: LimitOption = SHOWN,
    as_json: JsonOption = False,
) -> None:
    """Count an epoch's rows in quarantine, or print those of one output with the audits that they fail."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        if output is None:
            found = find_quarantine(runtime, epoch)
            told = {"outputs": found.outputs, "sources": found.sources, "folder": found.folder}
            print_result(as_json, {"epoch": epoch, **told} if as_json else found, show_quarantine)
            return
        batches = open_quarantined(runtime, epoch, output)
        rows = [] if batches is None else read_rows(batches, where, limit or None)
        if as_json:
            for line in row_lines(rows):
                typer.echo(line)
        elif batches is None:
            typer.echo(f"no row of {output} is in quarantine")
        else:
            show_rows(rows, batches.schema)


@app.command(epilog="For instance: lockstep diff flights 7 9 delays --by id")
def diff(
    pipeline: PipelineArgument,
    first: Annotated[int, typer.Argument(help="Number of one epoch.")],
    second: Annotated[int, typer.Argument(help="Number of the other one.")],
    output: OutputArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    by: Annotated[list[str] | None, typer.Option(help="Column of a key; more than one: say it again.")] = None,
    limit: Annotated[int, typer.Option(min=0, max=MAX_COUNT, help="How many different rows are shown.")] = SHOWN,
    as_json: JsonOption = False,
) -> None:
    """Compare the sealed rows of two epochs, as multisets; by digest first. Exit code 3 if they differ."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        with showing_progress("rows compared", hidden=as_json) as progress:
            found = diff_wals(runtime, first, second, output, by or (), limit, progress)
        print_result(as_json, _plain_diff(found) if as_json else found, show_diff)
        if not found.equal:
            raise typer.Exit(DISAGREES_EXIT)


def _plain_wal(one: LoggedWal) -> Json:
    epoch = one.epoch
    outputs = epoch.counted
    return {"epoch": epoch.id, "interval": epoch.interval, "state": epoch.state, "outputs": outputs, "kept": one.kept}


def _plain_log(found: WalLog) -> Json:
    kept = {"time": found.retention.time, "epochs": found.retention.epochs}
    return to_json({"pipeline": found.pipeline, "keep_wal": kept, "wals": [_plain_wal(one) for one in found.wals]})


def _plain_diff(found: WalDiff) -> Json:
    """With each example's row as an object of JSON's."""
    rows = [
        {"epoch": one.epoch, "times": one.times, "row": json.loads(line)}
        for one in found.examples
        for line in row_lines([one.row])
    ]
    told = {"output": found.output, "epochs": [found.first, found.second], "equal": found.equal}
    counts = {"rows": found.rows, "only": found.only, "changed": found.changed, "columns_only": found.columns_only}
    return to_json({**told, "by_digest": found.by_digest, **counts, "examples": rows})
