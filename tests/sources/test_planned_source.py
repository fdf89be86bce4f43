"""What a plan freezes of a source, and who opens a frozen range once the definition is another one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.sources import (
    DataSourceSource,
    FileSource,
    KafkaSource,
    MariaDbTableSource,
    OpenSource,
    PostgresTableSource,
    SequenceSource,
    Source,
    SourceContext,
)
from lockstep.sources.base import planned_source

SOURCES = [
    FileSource("landing/{interval_start:%Y-%m-%d}.csv", schema="id BIGINT", missing="empty", options={"sep": ";"}),
    FileSource("/logs/*.log", format="text", grow=True, max_files_per_epoch=3, formerly="/old/logs"),
    PostgresTableSource("public.t", connection="shop", order_by="xid", columns=("xid", "id"), accept="so be it"),
    MariaDbTableSource("t", connection="shop", order_by="id", settle=timedelta(seconds=1.5), settled_by="at"),
    DataSourceSource("m:C", options={"queue": "q"}, connection_options={"url": "queue"}, max_files_per_epoch=3),
    SequenceSource(40, first=5, last=100, partitions=3),
    KafkaSource(("a", "b"), connection="kafka", start={"a": {0: 7, 12: 0}}, value="json", value_schema="id BIGINT"),
    KafkaSource(pattern="a-.*", connection="kafka", start="latest", accept_loss="a-1", group="g", headers=True),
    KafkaSource("a", connection="kafka", start=datetime(2013, 1, 1, 5, tzinfo=UTC), max_rows_per_epoch=3),
    KafkaSource("a", connection="kafka", start="group:g", offset_reset="latest", end={"a": {0: 7, 12: 0}}),
    KafkaSource("a", connection="kafka", start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC)),
    KafkaSource("a", connection="kafka", key=json.loads, key_schema="id INT", value="m.n:C.f", value_schema="id INT"),
    KafkaSource("a", connection="kafka", value="avro", value_schema='"int"', registry="r", subjects=("a", "b")),
    KafkaSource("a", connection="kafka", by_interval=True, settle=timedelta(seconds=1.5)),
]


def test_a_source_is_the_same_again_by_what_a_plan_freezes_of_it(subtests: pytest.Subtests) -> None:
    for source in SOURCES:
        with subtests.test(source=source):
            spec = json.loads(json.dumps(source.spec()))
            assert spec["type"] == f"lockstep.sources:{type(source).__name__}"
            again = Source.from_spec(spec)
            assert type(again) is type(source)
            assert vars(again) == vars(source)
            assert again.spec() == spec


def test_a_class_of_old_is_found_under_its_name_of_today() -> None:
    spec = {
        "type": "lockstep.sources.tables.mariadb_table:MariaDbTableSource",
        "arguments": {"table": "t", "connection": "shop", "order_by": "id", "settle": 60.0},
    }
    found = Source.from_spec(spec)
    assert isinstance(found, MariaDbTableSource)
    assert found.settle == timedelta(minutes=1)


def events(**arguments: Any) -> PostgresTableSource:
    return PostgresTableSource(**{"table": "public.events", "connection": "shop", "order_by": "id", **arguments})


def test_where_a_range_is_read_is_as_planned_and_how_is_as_it_is_defined_now() -> None:
    planned = events(settle=timedelta(0)).spec()
    defined = events(table="public.others", connection="elsewhere", verify_count=False, columns=["id"])
    found = planned_source("events", planned, defined)
    assert isinstance(found, PostgresTableSource)
    assert (found.table, found.connection) == ("public.events", "shop")
    assert (found.verify_count, found.columns, found.settle) == (False, ("id",), None)
    of_an_older_version: Any = events().spec()
    del of_an_older_version["arguments"]["verify_count"]
    defined = events(verify_count=False)
    for spec in (events().spec(), of_an_older_version):
        assert planned_source("events", spec, defined) is defined


def test_settings_that_do_not_go_with_what_was_planned_are_left_aside(caplog: pytest.LogCaptureFixture) -> None:
    planned = FileSource("in/{interval_start}.txt", format="text")
    found = planned_source("files", planned.spec(), FileSource("in", format="text", grow=True))
    assert vars(found) == vars(planned)
    assert "as it was planned" in caplog.text


def test_offsets_of_another_topic_are_planned_ones_and_how_they_are_read_is_not() -> None:
    planned = KafkaSource("a", connection="kafka", value="json", value_schema="id BIGINT")
    defined = KafkaSource("b", connection="other", value="json", value_schema="id INT", on_bad_records="quarantine")
    found = planned_source("events", planned.spec(), defined)
    assert isinstance(found, KafkaSource)
    assert (found.topics, found.connection) == (("a",), "kafka")
    assert (found.value_schema, found.on_bad_records) == ("id INT", "quarantine")
    corrected = KafkaSource("a", connection="kafka", start="latest", accept_loss="a")
    assert planned_source("events", planned.spec(), corrected) is corrected
    assert planned_source("events", None, corrected) is corrected  # of a source that can't say what it is


@dataclass(frozen=True)
class Own(Source):
    place: Any

    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        raise NotImplementedError


class Undescribed(Source):
    identity = KeyedBy.CURSOR

    def open(self, context: SourceContext) -> OpenSource:
        raise NotImplementedError


def test_a_source_of_ones_own_is_frozen_if_it_is_a_dataclass_of_plain_values() -> None:
    assert Own("here").spec() == {"type": "tests.sources.test_planned_source:Own", "arguments": {"place": "here"}}
    assert planned_source("own", Own("here").spec(), Own("there")) == Own("here")


def _local() -> Source:
    class Local(Own):
        pass

    return Local("here")


def test_what_can_not_stand_in_a_plan_is_read_by_the_definition(subtests: pytest.Subtests) -> None:
    for source in [
        Own(print),
        Undescribed(),
        _local(),
        DataSourceSource("m:C", options={"password": "hush"}),
        DataSourceSource("m:C", options={"url": "mq://reader:hush@host/queue"}),
    ]:
        with subtests.test(source=source):
            assert source.spec() is None
            defined = Own("now")
            assert planned_source("own", None, defined) is defined
            with pytest.raises(InvalidPipeline, match="needs the pipeline's definition"):
                planned_source("own", None, None)


def test_a_class_that_is_gone_leaves_it_to_the_definition(
    caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    for spec in [
        {"type": "gone.module:Gone", "arguments": {}},
        {"type": "lockstep.sources:Gone", "arguments": {}},
        {"type": "json:JSONDecoder", "arguments": {}},
        {"type": "lockstep.sources:FileSource", "arguments": {"nothing": 1}},
    ]:
        with subtests.test(spec=spec):
            caplog.clear()
            defined = Own("now")
            assert planned_source("own", spec, defined) is defined
            assert "as it is defined now" in caplog.text
            with pytest.raises(InvalidPipeline):
                planned_source("own", spec, None)
