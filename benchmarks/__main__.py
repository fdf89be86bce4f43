"""`make bench`: every benchmark by turns, and each aim beside what was reached, by figures of this one run.

The run's figures can be kept under the version's name, and are compared with the newest that is kept.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.aims import AIMS, Aim
from lockstep import __version__

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
RESULTS = Path(__file__).parent / "results"
#: Modules, each a part of the run; `python -m benchmarks.PART --help` tells more of one.
PARTS = ("epochs", "audits", "restating", "year", "sinks", "lake", "state", "windows", "kafka", "ledger", "pages")
_QUICK = {
    "epochs": ["--rows", "300000"],
    "audits": ["--rows", "300000"],
    "restating": ["--days", "3", "--rows", "30000"],
    "year": ["--days", "30"],
    "sinks": ["--rows", "50000"],
    "lake": ["--rows", "300000"],
    "state": ["--rows", "10000"],
    "windows": ["--rows", "100000"],
    "kafka": ["--rows", "100000"],
    "ledger": ["--epochs", "20000", "--load-seconds", "5"],
    "pages": ["--epochs", "20000"],
}


@app.command()
def main(
    part: Annotated[list[str] | None, typer.Option(help="Measure this part alone; may be given again.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    quick: Annotated[bool, typer.Option(help="A tenth of the rows: to see that all of it runs.")] = False,
    full: Annotated[bool, typer.Option(help="The ledger with ten million epochs, which takes an hour.")] = False,
    flink: Annotated[bool, typer.Option(help="Flink beside the windows, too (JDK, Maven).")] = False,
    keep: Annotated[
        bool,
        typer.Option(
            help=f"Keep the figures as {RESULTS.name}/{__version__}.json; parts that weren't measured stay as they are."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write the figures into this file, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure, print every aim with what was reached; exit 1 if a part couldn't be measured."""
    if unknown := sorted(set(part or ()) - set(PARTS)):
        raise typer.BadParameter(f"{unknown}: there are {', '.join(PARTS)}", param_hint="--part")
    kept = _kept()
    same = kept is not None and kept["version"] == __version__
    before = {name: ways for name, ways in kept["parts"].items() if name in PARTS} if kept and same else {}
    parts: dict[str, list[dict[str, Any]] | None] = {}
    for name in [name for name in PARTS if not part or name in part]:
        parts[name] = _run(name, rounds, _options(name, quick, full, flink))
        if keep and not quick:  # what a later part meets takes nothing with it
            _write(_report({**before, **parts}, quick, full), RESULTS / f"{__version__}.json")
    report = _report(parts, quick, full)
    if as_json:
        typer.echo(json.dumps(report))
    else:
        _show(report, kept)
    if out is not None:
        _write(report, out)
    if None in parts.values():
        raise typer.Exit(1)


def _options(part: str, quick: bool, full: bool, flink: bool) -> list[str]:
    if flink and part == "windows":
        return [*(_QUICK[part] if quick else []), "--flink"]
    return _QUICK[part] if quick else ["--full"] if full and part == "ledger" else []


def _run(part: str, rounds: int, options: list[str]) -> list[dict[str, Any]] | None:
    """What the part measured; None if it failed, which the others don't suffer from."""
    _err.rule(part)
    own = [] if part in ("year", "ledger") else ["--rounds", str(rounds)]  # their rounds are days, and epochs
    command = [sys.executable, "-m", f"benchmarks.{part}", "--json", *own, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        _err.print(f"{part} ended with {done.returncode}")
        return None
    # what a part starts may print behind its figures
    lines = (line for line in reversed(done.stdout.splitlines()) if line.startswith(("[{", "{")))
    found = json.loads(next(lines, "null"))
    if found is None:
        _err.print(f"{part} printed no figures")
        return None
    return list(found["ways"] if isinstance(found, dict) else found)


def _report(parts: Mapping[str, list[dict[str, Any]] | None], quick: bool, full: bool) -> dict[str, Any]:
    """What is written: each way's figures by part, each aim's outcome."""
    return {
        "version": __version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "quick": quick,
        "full": full,
        "parts": dict(parts),
        "aims": [_outcome(aim, parts.get(aim.part) or []) for aim in AIMS],
    }


def _write(report: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


def _outcome(aim: Aim, measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    figure = aim.figure(measured)
    return {"aim": aim.name, "wanted": aim.wanted, "figure": figure, "met": figure is not None and aim.is_met(figure)}


def _kept() -> dict[str, Any] | None:
    """The report of the newest version that is kept."""
    found = sorted(
        RESULTS.glob("*.json"), key=lambda path: [int(n) if n.isdigit() else 0 for n in path.stem.split(".")]
    )
    return dict(json.loads(found[-1].read_text())) if found else None


def _show(report: dict[str, Any], kept: dict[str, Any] | None) -> None:
    before = {one["aim"]: one["figure"] for one in kept["aims"]} if kept else {}
    told = f"{kept['version']} ({kept['date']})" if kept else "nothing is kept"
    table = Table(title="aims, by figures of this run", title_justify="left")
    for column in ("aim", "wanted", "reached", told, ""):
        table.add_column(column, justify="left" if column == "aim" else "right")
    for aim, one in zip(AIMS, report["aims"], strict=True):
        if report["parts"].get(aim.part, ...) is ...:
            continue  # wasn't asked for
        reached = "not measured" if one["figure"] is None else aim.write(one["figure"])
        last = "" if before.get(aim.name) is None else aim.write(before[aim.name])
        table.add_row(aim.name, one["wanted"], reached, last, "" if one["met"] else "MISSED")
    Console(width=max(Console().width, 140)).print(table)


if __name__ == "__main__":
    app()
