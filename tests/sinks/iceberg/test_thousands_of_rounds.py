"""As `test_at_once`, for minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.values import Publication
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest
from tests.sinks.iceberg.publishers import publish_at_once


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("publishers", [2, 5])
def test_publishers_of_every_epoch_show_it_once(warehouse_dsn: str, memory: Path, publishers: int) -> None:
    answers = publish_at_once(IcebergUnderTest(warehouse_dsn, memory), 2000 // publishers, publishers)
    assert all(told.count(Publication.SENT) == 1 for told in answers)
