"""`python -m benchmarks.pages`: how long the pages of Airflow's UI take with few and with many epochs in the ledger.

Airflow's own application, with the plugin in it and a login, is asked in this process: no network and no browser count,
the auth manager, the ledger's queries and the templates do.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.ledger import FILLING, SAFE, SETTINGS
from benchmarks.ledger_filling import SOURCE, Size, fill
from benchmarks.ways import Way
from stack.home import Home
from stack.postgres import PostgresServer

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
SMALL, LARGE, PIPELINES = 10_000, 1_000_000, 10
AIM_MS = 300


@app.command()
def main(
    epochs: Annotated[int, typer.Option(min=1_000, help="Of the large ledger.")] = LARGE,
    rounds: Annotated[int, typer.Option(min=1, help="How often each page is asked for.")] = 20,
    keep: Annotated[Path | None, typer.Option(help="A folder where the filled ledgers stay for another run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Fill two ledgers, ask for each page by turns, print the medians in ms."""
    folder = keep or Home.from_environment().root / f"bench-pages-{os.getpid()}"
    os.environ["PGPASSFILE"] = str(folder / "pgpass")
    server = PostgresServer(folder / "postgres", passfile=folder / "pgpass", settings={**SETTINGS, **SAFE})
    try:
        server.start()
        ledgers = _ledgers(server, folder, {"small": SMALL, "large": epochs})
        ways = _measure(_browser(folder / "airflow"), ledgers, rounds)
    finally:
        if keep is None:
            server.remove()
            shutil.rmtree(folder, ignore_errors=True)
        else:
            server.stop()
    if as_json:
        typer.echo(json.dumps({"ways": [way.to_json(1) for way in ways]}))
    else:
        _show(ways, {"small": SMALL, "large": epochs})


def _ledgers(server: PostgresServer, folder: Path, sizes: dict[str, int]) -> dict[str, tuple[str, Size]]:
    """Filled now, unless an earlier run has left them."""
    described = folder / "filled.json"
    shapes = {name: Size(size, PIPELINES, claims=0, history=1000) for name, size in sizes.items()}
    if not described.exists():
        server.restart(settings=FILLING)
        for name, shape in shapes.items():
            _err.print(f"filling the {name} ledger: {shape.epochs:,} epochs of {PIPELINES} pipelines …")
            fill(server, name, shape, (_plan(), _plan()), _err.print)
        server.restart(settings=SAFE)
        described.write_text(json.dumps(sizes))
    elif json.loads(described.read_text()) != sizes:
        raise SystemExit(f"{folder} has ledgers of other sizes: {described.read_text()}")
    return {name: (server.dsn(name), shape) for name, shape in shapes.items()}


def _plan() -> Any:
    sink = {"type": "lockstep.sinks.files._sink.FileSink", "arguments": {"name": "out", "path": "/out/p0001"}}
    ranged = {SOURCE: {"start": None, "end": {"files": ["/landing/p0001/1.csv"]}}}
    return {"format": 1, "sources": ranged, "sinks": {"out": sink}, "reads": {SOURCE: "files /landing/p0001/*.csv"}}


def _browser(home: Path) -> Any:
    """Logged in as one who may do all."""
    os.environ |= {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    os.environ |= {"AIRFLOW__API_AUTH__JWT_SECRET": "j" * 64, "AIRFLOW__API__SECRET_KEY": "k" * 64}
    os.environ |= {"AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"), "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
    from airflow import settings
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from starlette.testclient import TestClient

    settings.configure_orm()  # type: ignore[no-untyped-call]
    import_all_models()  # type: ignore[no-untyped-call]
    Base.metadata.create_all(settings.engine)
    application = create_app(apps="core")
    login = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="bench", role="ADMIN"))
    return TestClient(application, cookies={"_token": login})


def _measure(browser: Any, ledgers: dict[str, tuple[str, Size]], rounds: int) -> list[Way]:
    """Each page of each ledger; the first round isn't counted."""
    ways: dict[tuple[str, str], Way] = {}
    for turn in range(rounds + 1):
        for name, (dsn, shape) in ledgers.items():
            os.environ["AIRFLOW_CONN_LOCKSTEP_LEDGER"] = dsn.replace("postgresql://", "postgres://")
            for page, path in _pages(shape).items():
                started = time.perf_counter()
                answer = browser.get(f"/lockstep/{path}")
                took = time.perf_counter() - started
                if answer.status_code != 200:
                    raise SystemExit(f"{path}: {answer.status_code} {answer.text[:2000]}")
                way = ways.setdefault((page, name), Way("pages", f"{page}, {name}"))
                if turn:
                    way.seconds.append(took)
                elif name == "large":
                    _err.print(f"{page}: {len(answer.content):,} bytes")
    return list(ways.values())


def _pages(shape: Size) -> dict[str, str]:
    """Those that read the ledger, with all that a pipeline's may show."""
    one = f"pipelines/{shape.name(1)}"
    return {
        "pipelines": "",
        "a pipeline, newest 50": one,
        "a pipeline, newest 200": f"{one}?limit=200",
        "a pipeline, 200 in the middle": f"{one}?before={shape.each // 2}&limit=200",
        "an epoch": f"{one}/epochs/{shape.each}",
        "what restating would do": f"{one}/epochs/{shape.each}/restate",
        "what recovery would do": f"{one}/recover",
    }


def _show(ways: list[Way], sizes: dict[str, int]) -> None:
    table = Table("page, ms (median, worst)", *(f"{size:,} epochs" for size in sizes.values()))
    found = {way.name: f"{1000 * way.median:.0f} ({1000 * max(way.seconds):.0f})" for way in ways}
    for page in _pages(Size(1, 1, 0, 0)):
        table.add_row(page, *(found[f"{page}, {name}"] for name in sizes))
    Console().print(table)
    Console().print(f"aim: {AIM_MS} ms")


if __name__ == "__main__":
    app()
