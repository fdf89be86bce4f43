"""`python -m benchmarks.pages`: how long the pages of Airflow's UI take with few and with many epochs in the ledger.

Airflow's own application, with the plugin in it and a login, is asked in this process: no network and no browser count,
the auth manager, the ledger's queries and the templates do.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.ledger_filling import SOURCE, Size, fill
from lockstep.ledger.report import Report
from stack.postgres import PostgresServer

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
SMALL, LARGE, PIPELINES = 10_000, 1_000_000, 10
AIM_MS = 300


@app.command()
def main(
    epochs: Annotated[int, typer.Option(min=1_000, help="Of the large ledger.")] = LARGE,
    rounds: Annotated[int, typer.Option(min=1, help="How often each page is asked for.")] = 20,
) -> None:
    """Fill two ledgers, ask for each page by turns, print the medians in ms."""
    with tempfile.TemporaryDirectory(prefix="lockstep-pages-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        server = PostgresServer(Path(folder) / "server", passfile=Path(folder) / "pgpass")
        os.environ["PGPASSFILE"] = str(Path(folder) / "pgpass")
        with server.for_a_while():
            ledgers = {}
            for size in (SMALL, epochs):
                _err.print(f"filling a ledger: {size:,} epochs of {PIPELINES} pipelines …")
                shape = Size(size, PIPELINES, claims=0, history=1000)
                ledgers[size] = (fill(server, f"of_{size}", shape, (_plan(), _plan()), _err.print), shape)
            browser = _browser(Path(folder) / "airflow")
            found = _measure(browser, ledgers, rounds)
    _show(found, list(ledgers))


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


def _measure(browser: Any, ledgers: dict[int, tuple[str, Size]], rounds: int) -> dict[str, dict[int, list[float]]]:
    """Milliseconds of each page in each ledger; the first round isn't counted."""
    found: dict[str, dict[int, list[float]]] = {}
    for turn in range(rounds + 1):
        for size, (dsn, shape) in ledgers.items():
            os.environ["AIRFLOW_CONN_LOCKSTEP_LEDGER"] = dsn.replace("postgresql://", "postgres://")
            for page, path in _pages(shape).items():
                started = time.perf_counter()
                answer = browser.get(f"/lockstep/{path}")
                took = (time.perf_counter() - started) * 1000
                if answer.status_code != 200:
                    raise SystemExit(f"{path}: {answer.status_code} {answer.text[:2000]}")
                if turn:
                    found.setdefault(page, {}).setdefault(size, []).append(took)
            with closing(Report(dsn)) as report:
                started = time.perf_counter()
                report.pipeline(shape.name(1))
                if turn:
                    took = (time.perf_counter() - started) * 1000
                    found.setdefault("(what `lockstep status` of a pipeline asks)", {}).setdefault(size, []).append(
                        took
                    )
    return found


def _pages(shape: Size) -> dict[str, str]:
    one = f"pipelines/{shape.name(1)}"
    return {
        "pipelines": "",
        "a pipeline, newest 50": one,
        "a pipeline, 50 in the middle": f"{one}?before={shape.each // 2}",
        "a pipeline, newest 1,000": f"{one}?limit=1000",
        "an epoch": f"{one}/epochs/{shape.each}",
    }


def _show(found: dict[str, dict[int, list[float]]], sizes: list[int]) -> None:
    table = Table("page, ms (median, worst)", *(f"{size:,} epochs" for size in sizes))
    for page, times in found.items():
        table.add_row(page, *(f"{statistics.median(times[size]):.0f} ({max(times[size]):.0f})" for size in sizes))
    Console().print(table)
    Console().print(f"aim: {AIM_MS} ms")


if __name__ == "__main__":
    app()
