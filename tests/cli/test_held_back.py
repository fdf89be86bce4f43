"""`lockstep status` says whose transaction keeps rows of a table from being read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.cli._tables import show_epochs
from lockstep.epoch import Epoch, Identity, Plan, SourceRange
from lockstep.ledger.report import EpochStatus, PipelineStatus
from lockstep.states import EpochState


def status_of(number: int, **position: str) -> EpochStatus:
    plan = Plan({"events": SourceRange(None, {"upto": str(number), **position})}, {})
    epoch = Epoch("shop", number, None, EpochState.PUBLISHED, number, plan, datetime.now(UTC))
    return EpochStatus(epoch, timedelta(0), timedelta(0), None, False, (), None)


@pytest.mark.parametrize(("newest", "told"), [({"held_by": "session 7 of clerk, for 1:02:03"}, True), ({}, False)])
def test_who_holds_rows_back_is_told_of_the_newest_epoch(
    newest: dict[str, str], told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = (status_of(2, **newest), status_of(1, held_by="session 6"))
    show_epochs([PipelineStatus("shop", Identity.CURSOR, 2, {EpochState.PUBLISHED: 2}, (), epochs)])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("rows waited for session 7 of clerk, for 1:02:03" in shown) is told
    assert "session 6" not in shown
