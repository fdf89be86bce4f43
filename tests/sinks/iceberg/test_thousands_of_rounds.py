"""As `test_at_once`, for a minute: on tables of up to sixty epochs, as each makes all later commits dearer."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.values import Publication
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest
from tests.sinks.iceberg.publishers import publish_at_once


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("tables", "rounds", "publishers"), [(4, 60, 2), (2, 20, 5)])
@pytest.mark.sample(1)
def test_publishers_of_every_epoch_show_it_once(
    catalog_dsn: str, memory: Path, tables: int, rounds: int, publishers: int
) -> None:
    for number in range(tables):
        target = IcebergUnderTest(catalog_dsn, memory)
        target.name = f"db.rows{number}"
        answers = publish_at_once(target, rounds, publishers)
        assert all(told.count(Publication.SENT) == 1 for told in answers)
