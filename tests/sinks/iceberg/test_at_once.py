"""Publishers of one epoch at once: one commit is applied, the others find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.iceberg import _markers as markers
from lockstep.sinks.values import Publication
from lockstep.testing._under_test import opened
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest
from tests.sinks.iceberg.publishers import publish_at_once

ROUNDS = 120


def test_two_publishers_of_every_epoch_show_it_once(
    warehouse_dsn: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markers, "WHOLE", 20)
    target = IcebergUnderTest(warehouse_dsn, memory)
    answers = publish_at_once(target, ROUNDS, 2)
    assert all(sorted(told) == [Publication.FOUND, Publication.SENT] for told in answers)
    with opened(target) as sink:
        assert [marker.epoch for marker in sink.markers()] == list(range(1, ROUNDS + 1)), "the folded ones, too"
