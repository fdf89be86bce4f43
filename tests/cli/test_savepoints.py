"""Savepoints of pipelines that keep no state: where an epoch ended, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.definition.keyed_state import KeyedState
from lockstep.epoch import RunKey
from lockstep.errors import IllegalTransition, InvalidPipeline, PlanMismatch, UnknownEpoch
from lockstep.features.keyed_state import hands_on_state
from lockstep.operations.savepoint import export, start
from lockstep.protocol.begin import begin
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.recover import recover
from lockstep.protocol.stage import stage
from lockstep.sinks import FileSink
from lockstep.sinks.files import files
from lockstep.wal.savepoint import read_savepoint
from stack.postgres import PostgresServer
from tests.crash.world import Numbers, rows_in, rows_of_day, write_parquet
from tests.sinks.append.feed import Days, Feed


@pytest.fixture
def dsn(ledger_server: PostgresServer) -> str:
    return ledger_server.create_database(f"saved_{uuid.uuid4().hex[:12]}")


@pytest.fixture
def feed(dsn: str, memory: Path) -> Feed:
    """A cursor pipeline without state; two epochs are published."""
    found = feed_of(dsn, memory)
    for run in range(2):
        move(found, run)
    return found


def feed_of(dsn: str, folder: Path, *, cursor: bool = True) -> Feed:
    sink = FileSink("out", output="numbers", path=str(folder / "out"))
    return Feed.of(dsn, folder, [sink], {}, cursor=cursor)


def again(feed: Feed, **changes: Any) -> Feed:
    """Another pipeline, in the same deployment."""
    sink = FileSink("out", output="numbers", path=str(feed.folder / "again"))
    pipeline = dataclasses.replace(feed.pipeline, name="again", sinks=[sink], **changes)
    return dataclasses.replace(feed, pipeline=pipeline)


def move(feed: Feed, run: int) -> None:
    feed.decide(run)
    feed.finish(run)


def days_in(folder: Path) -> Counter[int]:
    return Counter(day for day, _, _ in rows_in(map(Path, files(str(folder)))).elements())


def test_another_pipeline_goes_on_where_the_epoch_ended(feed: Feed, memory: Path) -> None:
    saved = str(memory / "saved")
    with feed.runtime() as runtime:
        found = export(runtime, saved)
    assert (found.epoch, dict(found.positions), dict(found.versions)) == (2, {"numbers": {"day": 1}}, {})
    other = again(feed)
    with other.runtime() as runtime:
        for _ in range(2):  # it may be repeated
            assert start(runtime, saved).hash == found.hash
        assert not hands_on_state(runtime), "epochs would wait for each other that hand on nothing"
    move(other, 10)
    move(other, 11)
    move(feed, 2)
    rows = len(rows_of_day(0))
    assert days_in(memory / "again") == {2: rows, 3: rows}
    assert days_in(memory / "out") == {0: rows, 1: rows, 2: rows}
    with other.runtime() as runtime:
        assert not recover(runtime).problems
        assert runtime.ledger.epoch("again", 1).based_on is None


def test_an_older_epoch_and_one_that_was_replaced_end_where_they_did(feed: Feed, memory: Path) -> None:
    """The end of the order is the last original's: what takes the place of one stands aside of it."""
    run = RunKey("feed", "restated", restate="a wrong row", epoch=1)
    with feed.runtime() as runtime:
        begin(runtime, run)
        stage(runtime, run, write_parquet)
        prepare(runtime, run, "out")
        commit(runtime, run)
        recover(runtime)
        names = {"last": None, "second": 2, "first": 1, "instead of it": 3}
        for name, number in names.items():
            export(runtime, str(memory / name), number)
    ends = {
        path.name: read_savepoint(str(path)).positions["numbers"]["day"] for path in (memory / name for name in names)
    }
    assert ends == {"last": 1, "second": 1, "first": 0, "instead of it": 0}


def test_what_nothing_goes_on_from_is_refused_by_name(feed: Feed, memory: Path, ledger_server: PostgresServer) -> None:
    saved = str(memory / "saved")
    with feed.runtime() as runtime:
        export(runtime, saved)
        with pytest.raises(IllegalTransition, match="has 2 epochs: only a new pipeline"):
            start(runtime, saved)
    with again(feed, sources={"others": Days()}).runtime() as runtime, pytest.raises(PlanMismatch, match="others"):
        start(runtime, saved)
    with again(feed, sources={"numbers": Numbers()}).runtime() as runtime:
        with pytest.raises(InvalidPipeline, match="the epochs of pipeline again are intervals"):
            start(runtime, saved)
        with pytest.raises(UnknownEpoch, match="no decided epoch"):
            export(runtime, str(memory / "nothing"))
    of_days = feed_of(ledger_server.create_database(f"saved_{uuid.uuid4().hex[:12]}"), memory / "days", cursor=False)
    move(of_days, 0)
    with of_days.runtime() as runtime, pytest.raises(InvalidPipeline, match="is an interval's"):
        export(runtime, saved)


def test_a_pipeline_with_state_may_begin_with_positions_alone_and_loses_no_state_unasked(
    feed: Feed, memory: Path
) -> None:
    saved = memory / "saved"
    with feed.runtime() as runtime:
        export(runtime, str(saved))
    keeping = again(feed, state={"sums": KeyedState("k BIGINT", key=["k"])})
    keeping = dataclasses.replace(keeping, pipeline=dataclasses.replace(keeping.pipeline, name="keeping"))
    with keeping.runtime() as runtime:
        start(runtime, str(saved))
        assert begin(runtime, RunKey("feed", "10")).plan.sources["numbers"].start == {"day": 1}
    file = saved / "_savepoint.json"
    told = json.loads(file.read_text())
    version = {"schema": "k BIGINT", "key": ["k"], "buckets": 1, "expires": None, "rows": 0, "bytes": 0, "files": []}
    told["versions"] = {"sums": version}
    file.write_text(json.dumps(told))
    refused = pytest.raises(PlanMismatch, match="has the state sums, which pipeline again lacks")
    with again(feed).runtime() as runtime, refused:
        start(runtime, str(saved))
    with again(feed, drop_state=["sums"]).runtime() as runtime:
        start(runtime, str(saved))


def test_the_command_tells_that_there_are_positions_alone(
    feed: Feed, dsn: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_LEDGER", dsn)
    arguments = ["savepoint", "export", "numbers", "--staging", str(memory / "staging"), "--to"]
    shown = CliRunner().invoke(app, [*arguments, str(memory / "saved")])
    assert shown.exit_code == 0, shown.output
    assert "positions alone, of numbers" in " ".join(shown.output.split())
    told = json.loads(CliRunner().invoke(app, [*arguments, str(memory / "second"), "--json"]).stdout)
    assert (told["epoch"], told["positions"], told["state"]) == (2, {"numbers": {"day": 1}}, {})
