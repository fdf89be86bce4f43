"""Any streaming reader of Spark's Python data source API as a source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

from lockstep.epoch import Interval, Json, KeyedBy, Position
from lockstep.errors import InvalidPipeline, LockstepError, SourceRefused, SourceUnavailable
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.open_source import OpenSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: password=…, "secret": "…" and their like, also in quotes
_NAMED = re.compile(
    r"""(?i)(?:password|passwd|pwd|secret|token|(?:api|access|account|private)[_-]?key)["']?\s*[=:]\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s&;,}]+))"""
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSourceSource(Source):
    """A `pyspark.sql.datasource.DataSource` with a `streamReader` or a `simpleStreamReader`; a cursor source.

    `data_source`: its class as `module:Class`, importable where epochs are planned and on Spark's workers. `options`:
    what it is made with. `connection_options`: further options, whose values are what a connection leads to, as
    {option: connection id}: they are in no plan. `schema`: Spark DDL, for a class without `schema()`.
    `max_rows_per_epoch`, `max_files_per_epoch`, `max_bytes_per_epoch`: one read limit, for readers that take one; else
    the reader's own default holds.

    What the class must keep: the same two offsets always mean the same rows. Nobody can notice that they don't.
    Positions are {"start": offset, "end": offset}. Raises `InvalidPipeline`.
    """

    data_source: str = field(kw_only=False)
    options: Mapping[str, str] = field(default_factory=dict)
    connection_options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    max_rows_per_epoch: int | None = None
    max_files_per_epoch: int | None = None
    max_bytes_per_epoch: int | None = None
    identity: KeyedBy = field(init=False, default=KeyedBy.CURSOR)
    operational: ClassVar[frozenset[str]] = frozenset(
        {"schema", "max_rows_per_epoch", "max_files_per_epoch", "max_bytes_per_epoch"}
    )

    def __post_init__(self) -> None:
        limits = self._limits()
        if len(limits) > 1 or any(number < 1 for _, number in limits):
            raise InvalidPipeline(f"source {self.data_source}: give one limit per epoch, of at least 1, not {limits}")

    def _limits(self) -> list[tuple[str, int]]:
        limits = {"rows": self.max_rows_per_epoch, "files": self.max_files_per_epoch, "bytes": self.max_bytes_per_epoch}
        return [(kind, number) for kind, number in limits.items() if number is not None]

    @property
    def limit(self) -> tuple[str, int] | None:
        """("rows" | "files" | "bytes", how many) of an epoch; None: the reader's own default."""
        return next(iter(self._limits()), None)

    def spec(self) -> Json | None:
        """None where options look as if a login were in them: that belongs into no plan."""
        if any(_looks_secret(name, value) for name, value in self.options.items()):
            return None
        return super().spec()

    def reads_from(self) -> str:
        return f"data source {self.data_source}"

    @property
    def connections(self) -> tuple[str, ...]:
        return tuple(self.connection_options.values())

    def open(self, context: SourceContext) -> OpenDataSource:
        return OpenDataSource(self, context)


class OpenDataSource(OpenSource):
    """Makes a reader for each question."""

    def __init__(self, source: DataSourceSource, context: SourceContext) -> None:
        self._source, self._context = source, context

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Where the reader says that this epoch ends. Raises `SourceUnavailable` for whatever the reader raises."""
        from lockstep.spark.python_readers import next_range, without

        source, before = self._source, start["end"] if start is not None else None
        options = self._options
        try:
            first, end = next_range(source.data_source, options, source.schema, before, source.limit)
        except LockstepError:
            raise
        except Exception as error:
            text = without(self._secrets, f"{type(error).__name__}: {error}")
            raise SourceUnavailable(f"data source {source.data_source}: {text}") from None
        return {"start": first, "end": end}

    def join(self, ends: Sequence[Position]) -> Position:
        for before, after in pairwise(ends):
            if before["end"] != after["start"]:
                raise SourceRefused(
                    f"data source {self._source.data_source}: the ranges don't join at {after['start']}"
                )
        return {"start": ends[0]["start"], "end": ends[-1]["end"]}

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return bool(end["start"] == end["end"])

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """The rows between the two offsets, in the partitions that the reader plans now, read on Spark's workers.

        What the reader raises there comes as a `RuntimeError` without the values of `connection_options`.
        """
        from lockstep.spark.python_readers import frame_of_range

        source, between = self._source, (end["start"], end["end"])
        return frame_of_range(spark, source.data_source, self._options, source.schema, *between, self._secrets)

    @property
    def _hidden(self) -> dict[str, str]:
        """The options whose values are in no plan."""
        options = self._source.connection_options
        return {option: str(self._context.dsn(connection)) for option, connection in options.items()}

    @property
    def _options(self) -> dict[str, str]:
        return {**self._source.options, **self._hidden}

    @property
    def _secrets(self) -> tuple[str, ...]:
        found = {secret for value in self._hidden.values() for secret in (value, *_secrets_in(value))}
        return tuple(sorted(found, key=len, reverse=True))  # of two that overlap, the whole one first


def _looks_secret(option: str, value: str) -> bool:
    return _NAMED.search(f"{option}={value}") is not None or any(_secrets_in(value))


def _secrets_in(value: str) -> Iterator[str]:
    """What may be a password in a URI, or behind a telling name, as it stands there and as it is meant.

    Which @ ends a login that has several, each reader decides for itself, and it may quote the pieces.
    """
    login = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
    named = [found[1] or found[2] or found[3] for found in _NAMED.finditer(value)]
    pieces = [piece for piece in re.split(r"[@:/?#\s\\]", login) if len(piece) > 1]
    for secret in (login, *pieces, *named):
        yield from filter(None, (secret, unquote(secret)))
