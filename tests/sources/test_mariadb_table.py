"""Rows of a MariaDB table by a column that only grows: what the lag waits for, what is noticed, what is refused."""

from __future__ import annotations

import traceback
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Position
from lockstep.errors import BadRecords, SourceChanged, SourceRefused, StageFailed
from lockstep.sources import MariaDbTableSource, SourceContext
from lockstep.sources.tables.source import OpenTableSource
from stack.mariadb import MariaDbServer
from tests.sources.reading import rows_of

HOUR = timedelta(hours=1)
EVENTS = """
    CREATE TABLE events (
        id bigint AUTO_INCREMENT PRIMARY KEY,
        name varchar(40) NOT NULL,
        at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), KEY (at)) CHARACTER SET utf8mb4
"""


class Shop:
    """A database with an empty table `events`."""

    def __init__(self, server: MariaDbServer, dsn: str) -> None:
        self.server, self.dsn, self.name = server, dsn, dsn.rpartition("/")[2]
        self.run(EVENTS)

    def run(self, *statements: str) -> None:
        """All in one transaction."""
        connection = self.server.connect(self.name)
        connection.begin()
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.commit()
        connection.close()

    def source(self, table: str = "events", **arguments: Any) -> OpenTableSource:
        given = {"order_by": "id", "settle": timedelta(0), **arguments}
        source = MariaDbTableSource(table, connection="shop", **given)
        return source.open(SourceContext("pipeline", "events", lambda paths: set(), {"shop": self.dsn}))


@pytest.fixture
def shop(mariadb_server: MariaDbServer, mariadb_dsn: str) -> Shop:
    return Shop(mariadb_server, mariadb_dsn)


def names(source: OpenTableSource, position: Position) -> list[str]:
    return sorted(row["name"] for row in rows_of(source, position))


@pytest.mark.fault("A12")
def test_a_row_committed_late_is_lost_by_the_largest_id_and_not_within_the_lag(shop: Shop) -> None:
    late = shop.server.connect(shop.name)
    late.begin()
    late.cursor().execute("INSERT INTO events (name) VALUES ('late')")
    shop.run("INSERT INTO events (name) VALUES ('early')")
    naive, settled = shop.source(), shop.source(settle=HOUR, settled_by="at")
    seen = {source: (found := source.latest(None, None), names(source, found)) for source in (naive, settled)}
    late.commit()
    late.close()
    with pytest.raises(SourceChanged, match="rows came late, with a smaller id"):
        naive.check(None, seen[naive][0])
    shop.run("UPDATE events SET at = at - INTERVAL 3 HOUR")
    read = {source: first + names(source, source.latest(found, None)) for source, (found, first) in seen.items()}
    assert read[naive] == ["early"]
    assert read[settled] == ["early", "late"]


def test_a_young_row_holds_back_everything_above_it(shop: Shop) -> None:
    shop.run("INSERT INTO events (name, at) VALUES ('old', now() - INTERVAL 3 HOUR), ('young', now())")
    shop.run("INSERT INTO events (name, at) VALUES ('old, above', now() - INTERVAL 3 HOUR)")
    source = shop.source(settle=HOUR, settled_by="at")
    assert names(source, first := source.latest(None, None)) == ["old"]
    by_time = shop.source(settle=HOUR, order_by="at")
    assert names(by_time, by_time.latest(None, None)) == ["old", "old, above"]
    assert source.is_empty(first, source.latest(first, None))


@pytest.mark.fault("X1", "X2")
def test_a_row_of_the_future_is_named_and_can_be_accepted(shop: Shop) -> None:
    shop.run("ALTER TABLE events MODIFY at timestamp(6) NULL, ADD moment datetime NOT NULL DEFAULT CURRENT_TIMESTAMP")
    shop.run("INSERT INTO events (name, at) VALUES ('a', now() - INTERVAL 3 HOUR), ('b', NULL), ('c', '2037-01-01')")
    settled: dict[str, Any] = {"settle": HOUR, "settled_by": "at"}
    first = shop.source(**settled).latest(None, None)
    assert (first["upto"], first["held_by"].partition(", ")[0]) == ("1", "the row with id 2: its at is NULL")
    second = shop.source(**settled, accept="id 2").latest(first, None)
    assert (second["upto"], "id 3: its at is 2037-01-01 00:00:00" in second["held_by"]) == ("2", True)
    shop.run("INSERT INTO events (name, moment) VALUES ('far', '9999-12-31')")
    with pytest.raises(SourceRefused, match="the row with moment 9999-12-31 00:00:00 is ahead of the server's clock"):
        shop.source(order_by="moment").latest(None, None)
    source = shop.source(order_by="moment", accept="moment 9999-12-31 00:00:00")
    found = source.latest(None, None)
    assert names(source, found) == ["a", "b", "c"]
    with pytest.raises(SourceChanged, match="the server's clock is at"):
        source.latest(found | {"upto": "9999-12-31 00:00:00"}, None)


def test_a_capped_epoch_goes_on_where_it_ended_and_its_pieces_are_the_whole(shop: Shop) -> None:
    shop.run(*(f"INSERT INTO events (name) VALUES ('{n}')" for n in range(9)))
    source = shop.source(max_rows_per_epoch=5)
    first = source.latest(None, None)
    second = source.latest(first, None)
    assert [names(source, first), names(source, second)] == [list("01234"), list("5678")]
    for parts in (2, 3, 9):
        assert sorted(row["name"] for row in rows_of(source, first, parts)) == list("01234")


def test_an_empty_table_and_deleted_rows(shop: Shop) -> None:
    source = shop.source()
    found = source.latest(None, None)
    assert source.is_empty(None, found)
    shop.run("INSERT INTO events (name) VALUES ('a'), ('b')")
    found = source.latest(found, None)
    shop.run("DELETE FROM events WHERE name = 'a'")
    with pytest.raises(SourceChanged, match=r"had 2 rows .* and has 1"):
        source.check(None, found)


LACKING: list[tuple[str, dict[str, Any], str]] = [
    ("SELECT 1", {"table": "nothing"}, "no such table"),
    ("SELECT 1", {"order_by": "nothing"}, "no column nothing"),
    ("SELECT 1", {"order_by": "name"}, "rows are ordered by"),
    ("SELECT 1", {"columns": ("id", "nope")}, r"no columns \['nope'\]"),
    ("SELECT 1", {"settle": None}, "give settle="),
    ("SELECT 1", {"settle": HOUR}, "settled_by= has to name a TIMESTAMP"),
    ("ALTER TABLE events ADD n int NULL", {"order_by": "n"}, "may be NULL"),
    ("ALTER TABLE events ADD t time, ADD b bit(3)", {}, r"t \(time\), b \(bit\(3\)\)"),
    ("ALTER TABLE events ENGINE Aria", {}, "its engine is Aria"),
    ("SET GLOBAL innodb_flush_log_at_trx_commit = 2", {}, "innodb_flush_log_at_trx_commit = 2"),
]


def test_what_a_table_lacks_is_named(shop: Shop, subtests: pytest.Subtests) -> None:
    for change, arguments, told in LACKING:
        shop.run("DROP TABLE events", EVENTS, change)
        try:
            with subtests.test(told), pytest.raises(SourceRefused, match=told):
                shop.source(**arguments).latest(None, None)
        finally:
            shop.run("SET GLOBAL innodb_flush_log_at_trx_commit = 1")


def accepted_by(refused: pytest.ExceptionInfo[SourceChanged]) -> str:
    return str(refused.value).partition("accept='")[2].rstrip("'")


@pytest.mark.fault("L5")
def test_numbers_that_the_server_gives_again_below_the_cursor_are_refused_before_the_plan(shop: Shop) -> None:
    shop.run("INSERT INTO events (name) VALUES ('a'), ('b'), ('c')")
    found = shop.source().latest(None, None)
    shop.run("DELETE FROM events WHERE name > 'a'")
    shop.source().latest(found, None)  # numbers go on
    shop.run("TRUNCATE events")
    with pytest.raises(SourceChanged, match="up to id 3, and the next id that the server gives is 1"):
        shop.source().latest(found, None)
    shop.run("INSERT INTO events (name) VALUES ('never read')")
    with pytest.raises(SourceChanged, match="the next id that the server gives is 2") as refused:
        shop.source().latest(found, None)
    source = shop.source(accept=("what was accepted before", accepted_by(refused)))
    assert source.is_empty(found, source.latest(found, None))
    shop.run("INSERT INTO events (id, name) VALUES (4, 'above')")
    assert names(shop.source(), shop.source().latest(found, None)) == ["above"]


@pytest.mark.fault("L5")
def test_a_lower_maximum_is_noticed_where_the_server_gives_no_numbers(shop: Shop) -> None:
    shop.run("CREATE TABLE given (id bigint PRIMARY KEY, name varchar(9))", "INSERT INTO given VALUES (7, 'x')")
    found = shop.source("given").latest(None, None)
    shop.run("UPDATE given SET id = 6")
    with pytest.raises(SourceChanged, match="its largest id is 6"):
        shop.source("given").latest(found, None)


@pytest.mark.fault("L5")
def test_another_server_of_the_same_default_id_is_no_continuation(shop: Shop, memory_folder: Path) -> None:
    shop.run("INSERT INTO events (name) VALUES ('here')")
    found = shop.source().latest(None, None)
    with MariaDbServer(memory_folder / "another").for_a_while() as other:
        there = Shop(other, other.create_database(shop.name))
        there.run("INSERT INTO events (id, name) VALUES (1, 'here'), (2, 'there')")
        with pytest.raises(SourceChanged, match="now leads to server 1 ") as refused:
            there.source().latest(found, None)
        source = there.source(accept=accepted_by(refused))
        assert names(source, source.latest(found, None)) == ["there"]


@pytest.mark.fault("L6")
def test_a_limit_of_the_server_cuts_no_range(shop: Shop) -> None:
    shop.run("INSERT INTO events (name) SELECT seq FROM seq_1_to_5")
    shop.run("SET GLOBAL sql_select_limit = 2")
    try:
        assert len(names(shop.source(), shop.source().latest(None, None))) == 5
    finally:
        shop.run("SET GLOBAL sql_select_limit = DEFAULT")


TYPES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "i1": ("tinyint", [("-128", -128)]),
    "u1": ("tinyint unsigned", [("255", 255)]),
    "u4": ("int unsigned", [("4294967295", 4294967295)]),
    "u8": ("bigint unsigned", [("18446744073709551615", Decimal(2**64 - 1))]),
    "i8": ("bigint", [("-9223372036854775808", -(2**63))]),
    "f4": ("float", [("0.1", 0.10000000149011612), ("16777217", 16777216.0)]),
    "f8": ("double", [("0.1", 0.1), ("1.7976931348623157e308", 1.7976931348623157e308)]),
    "n": ("decimal(38,10)", [("-1234567890123456789012345678.0000000001",) * 2]),
    "n0": ("decimal(10,0)", [("-7", Decimal(-7))]),
    "t": ("text", [("''", ""), ("'a''b\\n😀'", "a'b\n😀")]),
    "c": ("char(3)", [("'a'", "a")]),
    "e": ("enum('x','y')", [("'y'", "y")]),
    "y": ("varbinary(9)", [("x'00ff'", b"\x00\xff")]),
    "d": ("date", [("'9999-12-31'", date(9999, 12, 31))]),
    "dt": ("datetime(6)", [("'1000-01-01 00:00:00.000001'", datetime(1000, 1, 1, 0, 0, 0, 1))]),
    "ts": (
        "timestamp(6) NULL DEFAULT NULL",
        [("'2013-07-01 12:00:00.999999'", datetime.fromisoformat("2013-07-01 12:00:00.999999+00:00"))],
    ),
}


@pytest.mark.fault("X7")
def test_values_come_out_exactly(shop: Shop) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    shop.run(f"CREATE TABLE typed (id int AUTO_INCREMENT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    for name, (_, values) in TYPES.items():
        for literal, _ in values:
            shop.run(f"INSERT INTO typed ({name}) VALUES ({literal})")
    source = shop.source("typed", columns=tuple(TYPES))
    shop.run("SET GLOBAL sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
    try:
        rows = rows_of(source, source.latest(None, None))
    finally:
        shop.run("SET GLOBAL sql_mode = DEFAULT")
    for name, (_, values) in TYPES.items():
        expected = [Decimal(value) if name == "n" else value for _, value in values]
        assert [row[name] for row in rows if row[name] is not None] == expected, name


@pytest.mark.fault("J15")
@pytest.mark.parametrize("what", ["a date", "a function"])
def test_a_value_that_cant_be_read_is_not_told_but_to_who_asks(
    shop: Shop, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "a date":
        shop.run(
            "SET sql_mode = ''", "ALTER TABLE events ADD odd date", "INSERT INTO events (odd) VALUES ('2013-00-07')"
        )
        source, value, told = shop.source(), "2013-00-07", "column odd has one that date32"
    else:
        shop.run(
            "CREATE FUNCTION judge(t text) RETURNS int DETERMINISTIC BEGIN "
            "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no Jane Roe here'; RETURN 0; END",
            "CREATE VIEW leaking AS SELECT id, judge('x') AS n FROM events",
            "INSERT INTO events (name) VALUES ('x')",
        )
        source, value, told = shop.source("leaking", columns=("id", "n")), "Jane Roe", "by its error 1644"
    with pytest.raises((BadRecords, StageFailed, SourceRefused), match=f"{told}.*LOCKSTEP_SHOW_ROWS=1") as failure:
        rows_of(source, source.latest(None, None))
    assert value not in "".join(traceback.format_exception(failure.value))
    monkeypatch.setenv("LOCKSTEP_SHOW_ROWS", "1")
    with pytest.raises((BadRecords, StageFailed, SourceRefused), match=value):
        rows_of(source, source.latest(None, None))
