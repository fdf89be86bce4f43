"""`lockstep status` says whose transaction keeps rows from being read, and which source is read to its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.cli._commands import with_input
from lockstep.cli._tables import show_epochs
from lockstep.epoch import Epoch, Identity, Plan, Position, SourceRange
from lockstep.ledger.report import EpochStatus, PipelineStatus
from lockstep.sources import KafkaSource, PostgresTableSource, Source
from lockstep.states import EpochState
from tests.cases import cases


def status_of(number: int, specified: bool, **position: str) -> EpochStatus:
    source = PostgresTableSource("public.events", connection="shop", order_by="xid")
    return read(number, source, {"upto": str(number), **position}, specified=specified)


def read(number: int, source: Source, position: Position, *, specified: bool = True) -> EpochStatus:
    plan = Plan({"events": SourceRange(None, position, source.spec() if specified else None)}, {})
    epoch = Epoch("shop", number, None, EpochState.PUBLISHED, number, plan, datetime.now(UTC))
    return EpochStatus(epoch, timedelta(0), timedelta(0), None, False, (), None)


@cases("specified", [True, False])
@cases("newest, told", [({"held_by": "session 7 of clerk, for 1:02:03"}, True), ({}, False)])
def test_who_holds_rows_back_is_told_of_the_newest_epoch(
    newest: dict[str, str], told: bool, specified: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = (status_of(2, specified, **newest), status_of(1, specified, held_by="session 6"))
    found = PipelineStatus("shop", Identity.CURSOR, 2, {EpochState.PUBLISHED: 2}, (), epochs)
    show_epochs([with_input(found, lambda pipeline, source, paths: set())])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("rows waited for session 7 of clerk, for 1:02:03" in shown) is told
    assert "session 6" not in shown


@cases("ends, told", [({"0": 5, "1": 7}, True), ({"0": 5, "1": 8}, False)])
def test_a_source_that_is_read_to_its_end_is_told_of_the_newest_epoch(
    ends: dict[str, int], told: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_KAFKA", "127.0.0.1:1")  # nobody is asked
    source = KafkaSource("orders", connection="kafka", end="latest")
    orders = {"id": "1", "partitions": {"0": [0, 5], "1": [2, 7]}, "leaders": {}}
    bound = {"of": {}, "offsets": {"orders": ends}, "complete": True}
    epochs = (read(1, source, {"cluster": "c", "topics": {"orders": orders}, "bound": bound}),)
    found = PipelineStatus("shop", Identity.CURSOR, 1, {EpochState.PUBLISHED: 1}, (), epochs)
    show_epochs([with_input(found, lambda pipeline, source, paths: set())])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("finished: source events is read to its end" in shown) is told
