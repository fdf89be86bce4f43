"""Publishers of one epoch at once: one commit is applied, the others find it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.sinks.iceberg import _markers as markers
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import SCHEMA
from lockstep.testing._under_test import opened
from tests.sinks.iceberg.iceberg_target import TABLE, IcebergUnderTest
from tests.sinks.iceberg.publishers import publish_at_once

ROUNDS = 24
COLUMNS = SCHEMA.append(pa.field("lockstep_epoch", pa.int64()))


def test_two_publishers_of_every_epoch_show_it_once(
    catalog_dsn: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markers, "WHOLE", 4)
    target = IcebergUnderTest(catalog_dsn, memory)
    answers = publish_at_once(target, ROUNDS, 2)
    assert all(sorted(told) == [Publication.FOUND, Publication.SENT] for told in answers)
    with opened(target) as sink:
        assert [marker.epoch for marker in sink.markers()] == list(range(1, ROUNDS + 1)), "the folded ones, too"


def test_a_table_without_sequence_numbers_has_the_head_alone_to_tell_by(catalog_dsn: str, memory: Path) -> None:
    """In format version 2 a snapshot's sequence number gives a second commit away; in version 1 nothing else does."""
    target = IcebergUnderTest(catalog_dsn, memory)
    with target.catalog() as catalog:
        catalog.create_namespace("db")
        location = f"file://{memory}/theirs"
        catalog.create_table(TABLE, COLUMNS, location, properties={"format-version": "1"})
    answers = publish_at_once(target, 5, 3)
    assert all(told.count(Publication.SENT) == 1 for told in answers)
