"""Values that are larger than MariaDB's max_allowed_packet, which its functions turn into NULL without an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import PreflightRefused
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.values import Standing
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch
from stack.mariadb import MariaDbServer
from tests.sinks.mariadb_target import execute
from tests.sinks.one_sink import context, published

PACKET = 1 << 20
LONG = 'say "x", \n\\ü\t' * (PACKET // 8)  #: more than a packet
HALF = bytes(range(256)) * (3 * PACKET // 1024)  #: less than a packet, more as hex
SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string(), "data": pa.binary()})


@pytest.fixture
def dsn(mariadb_server: MariaDbServer, mariadb_dsn: str) -> Iterator[str]:
    """A database on a server that lets packets be of 1 MB."""
    [(before,)] = execute(mariadb_dsn, "SELECT @@GLOBAL.max_allowed_packet")
    mariadb_server.execute(f"SET GLOBAL max_allowed_packet = {PACKET}")
    yield mariadb_dsn
    mariadb_server.execute(f"SET GLOBAL max_allowed_packet = {before}")


def rows(*values: tuple[int, str | None, bytes | None]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), SCHEMA.types, strict=True)],
        schema=SCHEMA,
    )


def sink(**arguments: Any) -> MariaDbSink:
    return MariaDbSink("warehouse", tables={"rows": "target"}, connection="w", create=True, **arguments)


SENT = rows((1, LONG, None), (2, "short", b"short"), (3, None, HALF), (4, LONG, HALF), (5, None, None), (6, "", b""))


@pytest.mark.fault("J16")
@pytest.mark.parametrize("arguments", [{}, {"protocol": "write_ahead"}, {"mode": "upsert", "key": ["id"]}], ids=str)
def test_values_above_the_packet_come_back_as_they_went_in(dsn: str, arguments: dict[str, Any]) -> None:
    assert published(dsn, sink(**arguments), SENT).sort_by("id") == SENT


@pytest.mark.fault("J16")
def test_values_that_changed_are_noticed_whatever_their_length(dsn: str) -> None:
    given = sink(mode="upsert", key=["id"])
    published(dsn, given, SENT)

    def standing(text: str) -> Standing:
        sealed = SealedRows(pa.concat_tables([rows((1, text, None)), SENT.slice(1)]))
        with given.opened(context(dsn)) as live:
            return live.standing(epoch(), sealed)

    assert standing(LONG) == Standing(own=6, overwritten=0, missing=0, changed=0)
    assert standing(f"{LONG[:-1]}x") == Standing(own=5, overwritten=0, missing=0, changed=1)
    assert standing("short") == Standing(own=5, overwritten=0, missing=0, changed=1)


def test_a_server_that_takes_only_tiny_packets_is_refused(mariadb_server: MariaDbServer, dsn: str) -> None:
    mariadb_server.execute("SET GLOBAL max_allowed_packet = 16384")
    with pytest.raises(PreflightRefused, match="max_allowed_packet = 16384"):
        published(dsn, sink(), SENT)
