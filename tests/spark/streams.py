"""Streaming readers of every shape that Spark's Python data source API has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition, SimpleDataSourceStreamReader
from pyspark.sql.types import LongType, StructType

from lockstep.spark._pyspark import ReadAllAvailable, ReadLimit, ReadMaxFiles

AVAILABLE = 10  #: rows there are, 0…9


@dataclass
class Slice(InputPartition):
    start: int
    end: int


class Letters(DataSource):
    """A simple reader: it finds where a range ends by reading it."""

    def schema(self) -> str:
        return "n INT, letter STRING COMMENT 'a, b', more ARRAY<STRUCT<x: DECIMAL(5,2), y: MAP<STRING, DATE>>>"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        assert schema.fieldNames() == ["n", "letter", "more"]
        return LettersReader(self.options.get("alphabet", "abcdefghij"))


class LettersReader(SimpleDataSourceStreamReader):
    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        end = {"n": min(start["n"] + 4, AVAILABLE)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[Any, ...]]:
        return iter([(n, self.alphabet[n], None) for n in range(start["n"], end["n"])])


class Limited(DataSource):
    """A reader that takes read limits and plans as many partitions as its option says."""

    def schema(self) -> StructType:
        return StructType().add("n", LongType())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LimitedReader(int(self.options.get("partitions", "1")), self.options.get("url"))


class LimitedReader(DataSourceStreamReader):
    def __init__(self, count: int, url: str | None) -> None:
        self.count, self.url = count, url

    def initialOffset(self) -> dict[str, Any]:
        if self.url == "broken://secret":
            raise ConnectionError(f"{self.url} doesn't answer")
        if self.url and self.url.startswith("mq://"):
            raise PermissionError("no such login: reader, p/ss:w@rd")
        return {"shard": {"n": 0}}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if isinstance(limit, ReadAllAvailable):
            return {"shard": {"n": AVAILABLE}}
        assert isinstance(limit, ReadMaxFiles)
        return {"shard": {"n": min(start["shard"]["n"] + 2 * limit.max_files, AVAILABLE)}}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(1)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, last = start["shard"]["n"], end["shard"]["n"]
        assert first < last, "an empty range is nobody's to plan"
        size = -(-(last - first) // self.count)
        return [Slice(n, min(n + size, last)) for n in range(first, last, size)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        assert isinstance(partition, Slice)
        for n in range(partition.start, partition.end):
            yield (n,)


class Talkative(Limited):
    """Its errors tell the URL that it was given: `at` says where it raises."""

    def schema(self) -> StructType:
        self.fail_at("schema")
        return super().schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        self.fail_at("streamReader")
        return TalkativeReader(self)

    def fail_at(self, place: str) -> None:
        if self.options["at"] == place:
            raise ConnectionError(f"{place}: {self.options['url']} doesn't answer, password p/ss:w@rd")


class TalkativeReader(LimitedReader):
    def __init__(self, source: Talkative) -> None:
        super().__init__(1, source.options["url"])
        self.source = source

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self.source.fail_at("partitions")
        return super().partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from super().read(partition)
        self.source.fail_at("read")
