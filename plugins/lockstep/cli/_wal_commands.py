"""Commands that read sealed rows: `lockstep wal list`, `wal show`, `lockstep quarantine` and `lockstep diff`."""

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
from lockstep.operations.wal_log import SHOWN, WalLog, list_wals, open_output, read_rows

wals = typer.Typer(help="Inspect sealed WALs: of unfinished epochs, and retained ones.", no_args_is_help=True)
app.add_typer(wals, name="wal")

OutputArgument = Annotated[str, typer.Argument(help="Name of an output of the transform.")]
LimitOption = Annotated[int, typer.Option(min=0, max=MAX_COUNT, help="How many rows; 0: all.")]
WhereOption = Annotated[str | None, typer.Option(help="SQL condition on the columns; needs the extra duckdb.")]


@wals.command("list", epilog="For instance: lockstep wal list flights")
def list_(
    pipeline: PipelineArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    limit: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="How many, newest epochs first.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """List the sealed WALs, with their rows and bytes, and how long they are retained."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        log = list_wals(runtime, limit)
        print_result(as_json, _plain_log(log) if as_json else log, show_wals)


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
    """Print sealed rows of one output, from files that match the manifest. With --json one object per line."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        batches = open_output(runtime, epoch, output)
        rows = read_rows(batches, where, limit or None)
        if not as_json:
            show_rows(rows, batches.schema)
            return
        for line in row_lines(rows):
            typer.echo(line)


@app.command(epilog="For instance: lockstep quarantine flights 7 delays --limit 5")
def quarantine(
    pipeline: PipelineArgument,
    epoch: EpochArgument,
    ledger: LedgerOption,
    staging: StagingOption,
    output: Annotated[str | None, typer.Argument(help="Name of an output, to print its rows; default: count.")] = None,
    where: WhereOption = None,
    limit: LimitOption = SHOWN,
    as_json: JsonOption = False,
) -> None:
    """Count an epoch's rows in quarantine, or print those of one output with the audits that they fail."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        if output is None:
            log = find_quarantine(runtime, epoch)
            facts = {"outputs": log.outputs, "sources": log.sources, "folder": log.folder}
            print_result(as_json, {"epoch": epoch, **facts} if as_json else log, show_quarantine)
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
    by: Annotated[list[str] | None, typer.Option(help="Column of a key; repeat it for more than one.")] = None,
    limit: Annotated[int, typer.Option(min=0, max=MAX_COUNT, help="How many differing rows to show.")] = SHOWN,
    as_json: JsonOption = False,
) -> None:
    """Compare the sealed rows of two epochs as multisets, by digest first. Exit code 3 if they differ."""
    with reported(as_json), runtime_of(pipeline, ledger, staging) as runtime:
        with showing_progress("rows compared", hidden=as_json) as progress:
            result = diff_wals(runtime, first, second, output, by or (), limit, progress)
        print_result(as_json, _plain_diff(result) if as_json else result, show_diff)
        if not result.equal:
            raise typer.Exit(DISAGREES_EXIT)


def _plain_log(log: WalLog) -> Json:
    wals = [
        {
            "epoch": wal.epoch.id,
            "interval": wal.epoch.interval,
            "state": wal.epoch.state,
            "outputs": wal.epoch.counted,
            "kept": wal.kept,
        }
        for wal in log.wals
    ]
    keep_wal = {"time": log.retention.time, "epochs": log.retention.epochs}
    return to_json({"pipeline": log.pipeline, "keep_wal": keep_wal, "wals": wals})


def _plain_diff(result: WalDiff) -> Json:
    """The result as JSON, with the rows of the examples as objects."""
    rows = [
        {"epoch": example.epoch, "times": example.times, "row": json.loads(line)}
        for example in result.examples
        for line in row_lines([example.row])
    ]
    summary = {"output": result.output, "epochs": [result.first, result.second], "equal": result.equal}
    counts = {"rows": result.rows, "only": result.only, "changed": result.changed, "columns_only": result.columns_only}
    return to_json({**summary, "by_digest": result.by_digest, **counts, "examples": rows})
