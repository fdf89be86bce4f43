"""`lockstep exporter`: what is measured of pipelines, for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from lockstep.cli._commands import JsonOption, LedgerOption, app, print_found, reported
from lockstep.operations.exporter import Exporter, as_text, registry_of, serve

PORT = 9877


@app.command(epilog="For instance: lockstep exporter --once")
def exporter(
    ledger: LedgerOption,
    host: Annotated[str, typer.Option(help="Address to listen at. There is no login: all who reach it can read.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = PORT,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=3600, help="Seconds that a scrape waits for the ledger: fewer than Prometheus does."),
    ] = 8.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print it once, and end: for the node exporter's text files.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Serve metrics of pipelines to Prometheus at http://127.0.0.1:9877/metrics: epochs, ages, lag, what is stuck.

    Reads the ledger and nothing else, at each scrape. With --json it prints the same once, as JSON. Exit code 75 if
    --once finds the ledger away.
    """
    with reported(as_json):
        asking = Exporter(ledger, timeout)
        if as_json:
            print_found(True, asking.measure(), None)
            return
        registry = registry_of(asking)
        if once:
            typer.echo(as_text(registry), nl=False)
            if asking.failure is not None:
                raise asking.failure
            return
        try:
            listening, thread = serve(registry, host, port)
        except OSError as error:
            raise typer.BadParameter(f"can't listen at {host}:{port}: {error.strerror or error}") from error
        typer.echo(f"http://{host}:{listening}/metrics")
        thread.join()
