"""IcebergSink under the suite that every sink has to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.testing._behaviour import Behaviour, behaviours
from tests.sinks.guarantees import expect_row
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest


@pytest.mark.parametrize("behaviour", behaviours(IcebergUnderTest), ids=lambda one: one.__name__)
def test_catalog_in_postgres(warehouse_dsn: str, memory: Path, behaviour: Behaviour) -> None:
    behaviour(IcebergUnderTest(warehouse_dsn, memory))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(warehouse_dsn: str, memory: Path) -> None:
    expect_row("IcebergSink", IcebergUnderTest(warehouse_dsn, memory))
