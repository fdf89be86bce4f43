"""Both kinds of tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sinks.compaction.lakes import DeltaLake, IcebergLake, Lake


@pytest.fixture(params=["delta", "iceberg"])
def make_lake(request: pytest.FixtureRequest, memory: Path) -> Callable[..., Lake]:
    if request.param == "delta":
        return lambda **arguments: DeltaLake(memory, **arguments)
    dsn = request.getfixturevalue("catalog_dsn")
    return lambda **arguments: IcebergLake(dsn, memory, **arguments)


@pytest.fixture
def lake(make_lake: Callable[..., Lake]) -> Lake:
    return make_lake()
