"""IcebergSink under the suite that every sink has to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.testing._behaviour import behaviours
from tests.sinks.guarantees import expect_row
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest


def test_catalog_in_postgres(catalog_dsn: str, memory: Path, subtests: pytest.Subtests) -> None:
    for behaviour in behaviours(IcebergUnderTest):
        with subtests.test(behaviour.__name__):
            target = IcebergUnderTest(catalog_dsn, memory)
            target.name = f"db.{behaviour.__name__}"
            behaviour(target)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(catalog_dsn: str, memory: Path) -> None:
    expect_row("IcebergSink", IcebergUnderTest(catalog_dsn, memory))
