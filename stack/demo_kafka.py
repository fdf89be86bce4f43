"""`make demo-kafka`: a producer sends real flights to Kafka while DAG runs sum them by hour; then a batch is compared.

It can be killed at any moment and started again: the producer goes on where it stood, and so does the pipeline.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2
from rich import box
from rich.console import Console
from rich.table import Table

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker, settings_of
from lockstep.epoch import Epoch
from lockstep.errors import LockstepError
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.verify import verify
from lockstep.states import SHOWN
from lockstep.wal.staging import Staging
from stack.airflow import ADMIN
from stack.airflow_api import AirflowApi
from stack.dag_runs import await_run, unpaused
from stack.demo import exit_code, only_demo, running
from stack.demo_tables import show_checks
from stack.errors import StackError
from stack.flight_feed import ORIGINS, events
from stack.home import CHECKOUT, Home
from stack.landing import FIRST_DAY
from stack.lifecycle import Stack
from stack.reconciliation import Check
from stack.window_proof import checks

DAG = "kafka_windows"
SOURCE, TARGET = "departures", "hourly_departures"
_SHOWN = 12


def run_demo_kafka(days: int, seconds: float, as_json: bool = False) -> int:
    """0 when every count agrees, 1 otherwise. Progress goes to stderr when stdout carries JSON. Raises StackError."""
    console = Console(stderr=as_json)
    home = Home.from_environment()
    stack = Stack(home, lambda line: console.print(line, highlight=False, markup=False))
    began = time.monotonic()
    try:
        with only_demo(home), running(stack, console):
            report = KafkaDemo(stack, console, days, seconds).run()
    except (LockstepError, psycopg2.Error) as error:
        raise StackError(f"{type(error).__name__}: {str(error).strip()}") from error
    return exit_code(report, console, began, as_json)


class KafkaDemo:
    """One demo on a running stack."""

    def __init__(self, stack: Stack, console: Console, days: int, seconds: float) -> None:
        if stack.kafka.pid is None:
            raise StackError("the stack runs without Kafka: `make down`, `make kafka`, then start the demo again")
        self._environment = stack.environment
        self._bootstrap = stack.kafka.bootstrap
        self._login = (stack.airflow.url, ADMIN, json.loads(stack.airflow.passwords.read_text())[ADMIN])
        self._console, self._days, self._seconds = console, days, seconds

    def run(self) -> dict[str, Any]:
        """What the demo found, as JSON; `agrees` is the verdict."""
        cluster = Cluster(settings_of(self._bootstrap, "demo"), Asker("demo"))
        for topic in (SOURCE, TARGET):
            cluster.create_topic(topic, len(ORIGINS), {})
        cluster.close()
        sent = len(events(self._days))
        self._say(f"a producer sends {sent:,} flights of {self._days} days within {self._seconds:.0f} s, out of order")
        began = time.monotonic()
        with self._feeding() as feed, AirflowApi(*self._login) as api, unpaused(api, DAG):
            runs = self._run_until_all_is_read(api, feed, sent)
        self._say(f"{runs} runs of the DAG in {time.monotonic() - began:.0f} s")
        found = self._epochs()
        self._show(found)
        until = datetime.combine(FIRST_DAY + timedelta(days=self._days), datetime.min.time(), UTC)
        proof = checks(found, self._environment["LOCKSTEP_WAREHOUSE"], self._bootstrap, (SOURCE, TARGET), sent, until)
        proof += self._verified(found)
        show_checks(self._console, proof)
        return {
            "agrees": all(check.agrees for check in proof),
            "runs": runs,
            "epochs": [{"epoch": one.id, **one.summary["balances"]["windows"]} for one in found],
            "checks": [{**asdict(check), "agrees": check.agrees} for check in proof],
        }

    # --- steps --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _feeding(self) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "stack.flight_feed", "--bootstrap", self._bootstrap, "--topic", SOURCE]
        command += ["--days", str(self._days), "--seconds", str(self._seconds)]
        feed = subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
        try:
            yield feed
        finally:
            feed.kill()
            feed.communicate()

    def _run_until_all_is_read(self, api: AirflowApi, feed: subprocess.Popen[str], sent: int) -> int:
        """One run after another, each taking what has come by then; until the producer is done and all is published."""
        runs, before = 0, -1
        while True:
            over = feed.poll()  # before the run: what is sent after it began may not be in it
            if over:
                raise StackError(f"the producer failed: {(feed.stderr.read() if feed.stderr else '').strip()}")
            await_run(api, DAG, api.trigger(DAG, {}))
            runs += 1
            read = sum(one.summary["balances"]["windows"]["in"] for one in self._epochs())
            self._say(f"  run {runs}: {read:,} of {sent:,} flights are in windows, filtered or late")
            if over is not None and read in (sent, before):  # a shortfall is for the checks to show
                return runs
            before = read

    def _verified(self, found: list[Epoch]) -> list[Check]:
        """What each sink shows of each epoch against what was sealed."""
        connections = {"warehouse": self._environment["LOCKSTEP_WAREHOUSE"], "kafka": self._bootstrap}
        with closing(Ledger(self._environment["LOCKSTEP_LEDGER"], "demo")) as ledger:
            runtime = runtime_for(DAG, ledger, Staging(self._environment["LOCKSTEP_STAGING"]), connections)
            told = [one for epoch in found for one in verify(runtime, epoch)]
        wrong = tuple(f"epoch {one.epoch} in {one.sink}: {one.problem}" for one in told if not one.agrees)
        return [Check("epochs", "outputs sealed", len(told), "read back from the sinks", len(told) - len(wrong), wrong)]

    # --- the ledger's view --------------------------------------------------------------------------------------------

    def _epochs(self) -> list[Epoch]:
        with closing(Ledger(self._environment["LOCKSTEP_LEDGER"], "demo")) as ledger:
            return [one for one in ledger.sealed_epochs(DAG, 1) if one.state in SHOWN]

    def _show(self, found: list[Epoch]) -> None:
        table = Table(title="Epochs", title_justify="left", box=box.SIMPLE_HEAD)
        columns = ("epoch", "flights", "folded", "corrected", "late", "filtered", "windows out", "windows kept")
        for column in columns:
            table.add_column(column, justify="right")
        for one in found[-_SHOWN:]:
            summary: Mapping[str, Any] = one.summary
            counts = summary["balances"]["windows"]
            numbers = [counts[name] for name in ("in", "folded", "corrected", "late", "filtered")]
            numbers += [summary["outputs"]["hourly"]["rows"], summary["state"]["windows"]["rows"]]
            table.add_row(str(one.id), *(f"{number:,}" for number in numbers))
        self._console.print(table)

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)
