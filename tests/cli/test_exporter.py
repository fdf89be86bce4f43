"""What Prometheus scrapes: over HTTP, of a real ledger, and of one that is away or doesn't answer."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from lockstep.epoch import RunKey
from lockstep.ledger.measures import GAUGES
from lockstep.operations.exporter import (
    LEDGER_UP,
    SCRAPE_SECONDS,
    Exporter,
    as_text,
    registry_of,
    serve,
)
from stack.postgres import PostgresServer
from tests.cli.conftest import Lockstep
from tests.crash.world import World

NAMES = {LEDGER_UP, SCRAPE_SECONDS, *(gauge.name for gauge in GAUGES)}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {(one.name, frozenset(one.labels.items())): one.value for family in parse(text) for one in family.samples}


def of(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset({"pipeline": "numbers", **labels}.items())]


def scraped(dsn: str, seconds: float = 20, accept: str = "text/plain") -> str:
    """The text of one scrape by HTTP of a ledger."""
    port, _ = serve(registry_of(Exporter(dsn, seconds)), "127.0.0.1", 0)
    with urlopen(Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})) as answer:
        assert answer.status == 200
        return str(answer.read().decode())


def test_a_scrape_tells_of_each_pipeline_what_status_tells(world: World) -> None:
    world.run(RunKey("cli", "run"), next(world.days))
    world.run_until(RunKey("cli", "half"), next(world.days), "prepare.warehouse")
    world.run_until(RunKey("cli", "decided"), next(world.days), "publish.warehouse")
    world.fall_silent()
    found = samples(scraped(world.ledger_dsn))
    assert {name for name, _ in found} == NAMES, "every metric has a sample"
    assert found[LEDGER_UP, frozenset()] == 1
    by_state = {
        state: of(found, "lockstep_epochs", state=state) for state in ("cleaned", "staged", "committed", "void")
    }
    assert by_state == {"cleaned": 1, "staged": 1, "committed": 1, "void": 0}
    assert of(found, "lockstep_stuck_epochs") == 1
    assert of(found, "lockstep_oldest_undecided_seconds") > 0
    assert of(found, "lockstep_sink_prepared_epochs", sink="warehouse") == 1, "of the one that isn't decided"
    assert of(found, "lockstep_sink_prepared_epochs", sink="files") == 1, "of the one that is"
    assert of(found, "lockstep_sink_unpublished_epochs", sink="warehouse") == 0
    assert of(found, "lockstep_sink_unpublished_epochs", sink="files") == 1
    assert of(found, "lockstep_shown_epoch_rows", output="numbers") == 20
    assert of(found, "lockstep_shown_epoch_seconds", state="committed") >= 0
    assert of(found, "lockstep_lag_seconds") > 0


@pytest.mark.usefixtures("new_sessions")
def test_a_ledger_that_is_away_is_told_as_down_with_no_number_beside_it_and_comes_back(
    ledger_server: PostgresServer, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.run(RunKey("cli", "run"), next(world.days))
    exporter = Exporter(world.ledger_dsn, 20)
    registry = registry_of(exporter)
    there = samples(as_text(registry))
    [[name]] = world.execute(world.ledger_dsn, "SELECT current_database()")
    world.execute(ledger_server.dsn(), f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    for _ in range(2):
        away = samples(as_text(registry))
        assert {metric for metric, _ in away} == {LEDGER_UP, SCRAPE_SECONDS}
        assert away[LEDGER_UP, frozenset()] == 0
    assert caplog.text.count("LedgerUnavailable") == 1, "told once, however often it is scraped"
    world.execute(ledger_server.dsn(), f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    back = samples(as_text(registry))
    assert back.keys() == there.keys() and back[LEDGER_UP, frozenset()] == 1


def test_a_ledger_that_says_nothing_holds_a_scrape_no_longer_than_it_may(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        found = samples(scraped(f"host=127.0.0.1 port={port} dbname=nothing connect_timeout=2", 0.2))
    assert "has not answered within 0.2 s" in caplog.text
    assert {name for name, _ in found} == {LEDGER_UP, SCRAPE_SECONDS}
    assert found[LEDGER_UP, frozenset()] == 0


def test_series_grow_not_with_epochs_and_are_the_same_as_openmetrics_and_by_once(
    world: World, lockstep: Lockstep
) -> None:
    world.run(RunKey("cli", "1"), next(world.days))
    before = samples(scraped(world.ledger_dsn)).keys()
    world.run(RunKey("cli", "2"), next(world.days))
    assert samples(scraped(world.ledger_dsn)).keys() == before
    text = scraped(world.ledger_dsn, accept="application/openmetrics-text; version=1.0.0")
    families = parse_openmetrics(text)  # type: ignore[no-untyped-call]
    assert {family.name for family in families} == NAMES
    told = lockstep("exporter", "--once")
    assert told.exit_code == 0
    assert {name for name, _ in samples(told.stdout)} == NAMES
    away = lockstep("exporter", "--once", "--ledger", "host=127.0.0.1 port=1 dbname=nowhere")
    assert away.exit_code == 75, "it says so by its exit code, too"
    assert samples(away.stdout)[LEDGER_UP, frozenset()] == 0
    assert "LedgerUnavailable" in away.stderr
    [numbers] = json.loads(lockstep("exporter", "--json").stdout)
    assert (numbers["pipeline"], numbers["epochs"]["cleaned"]) == ("numbers", 2)


def test_the_command_listens_on_the_loopback_and_answers_until_it_is_ended(world: World) -> None:
    command = [str(Path(sys.executable).with_name("lockstep")), "exporter", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", address)
            listening = [one for one in psutil.Process(process.pid).net_connections() if one.status == "LISTEN"]
            assert [one.laddr.ip for one in listening] == ["127.0.0.1"]
            with urlopen(address) as answer:
                assert samples(answer.read().decode())[LEDGER_UP, frozenset()] == 1
        finally:
            process.terminate()
