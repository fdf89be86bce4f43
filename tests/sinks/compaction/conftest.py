"""Both kinds of tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sinks.compaction.lakes import DeltaLake, IcebergLake, Lake


@pytest.fixture(params=["delta", "iceberg"])
def make_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Lake]:
    if request.param == "delta":
        return lambda **arguments: DeltaLake(tmp_path, **arguments)
    dsn, folder = request.getfixturevalue("warehouse_dsn"), request.getfixturevalue("memory")
    return lambda **arguments: IcebergLake(dsn, folder, **arguments)


@pytest.fixture
def lake(make_lake: Callable[..., Lake]) -> Lake:
    return make_lake()
