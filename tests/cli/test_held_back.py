"""`lockstep status` says whose transaction keeps rows of a table from being read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.cli._commands import with_input
from lockstep.cli._tables import show_epochs
from lockstep.epoch import Epoch, Identity, Plan, SourceRange
from lockstep.ledger.report import EpochStatus, PipelineStatus
from lockstep.sources import PostgresTableSource
from lockstep.states import EpochState


def status_of(number: int, specified: bool, **position: str) -> EpochStatus:
    spec = PostgresTableSource("public.events", connection="shop", order_by="xid").spec() if specified else None
    plan = Plan({"events": SourceRange(None, {"upto": str(number), **position}, spec)}, {})
    epoch = Epoch("shop", number, None, EpochState.PUBLISHED, number, plan, datetime.now(UTC))
    return EpochStatus(epoch, timedelta(0), timedelta(0), None, False, (), None)


@pytest.mark.parametrize("specified", [True, False], ids=["", "plan of old"])
@pytest.mark.parametrize(("newest", "told"), [({"held_by": "session 7 of clerk, for 1:02:03"}, True), ({}, False)])
def test_who_holds_rows_back_is_told_of_the_newest_epoch(
    newest: dict[str, str], told: bool, specified: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = (status_of(2, specified, **newest), status_of(1, specified, held_by="session 6"))
    found = PipelineStatus("shop", Identity.CURSOR, 2, {EpochState.PUBLISHED: 2}, (), epochs)
    show_epochs([with_input(found, lambda pipeline, source, paths: set())])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("rows waited for session 7 of clerk, for 1:02:03" in shown) is told
    assert "session 6" not in shown
