"""Any streaming reader of Spark's Python data source API as a source."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lockstep.epoch import Identity, Interval, Position
from lockstep.errors import InvalidPipeline, LockstepError, SourceUnavailable
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.open_source import OpenSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: password=…, "secret": "…" and their like, also in quotes
_NAMED = re.compile(
    r"""(?i)(?:password|passwd|pwd|secret|token|(?:api|access|account|private)[_-]?key)["']?\s*[=:]\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s&;,}]+))"""
)


@dataclass(eq=False, kw_only=True)
class DataSourceSource(Source, OpenSource):
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
    identity: Identity = field(init=False, default=Identity.CURSOR)

    def __post_init__(self) -> None:
        self._context: SourceContext | None = None
        limits = {"rows": self.max_rows_per_epoch, "files": self.max_files_per_epoch, "bytes": self.max_bytes_per_epoch}
        given = [(kind, number) for kind, number in limits.items() if number is not None]
        if len(given) > 1 or any(number < 1 for _, number in given):
            raise InvalidPipeline(f"source {self.data_source}: give one limit per epoch, of at least 1, not {given}")
        self._limit = given[0] if given else None

    def reads_from(self) -> str:
        return f"data source {self.data_source}"

    @property
    def connections(self) -> tuple[str, ...]:
        return tuple(self.connection_options.values())

    def open(self, context: SourceContext) -> DataSourceSource:
        opened = copy.copy(self)
        opened._context = context
        return opened

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Where the reader says that this epoch ends. Raises `SourceUnavailable` for whatever the reader raises."""
        from lockstep.spark.stream_ranges import next_range, without

        options = self._all_options()
        before = start["end"] if start is not None else None
        try:
            first, end = next_range(self.data_source, options, self.schema, before, self._limit)
        except LockstepError:
            raise
        except Exception as error:
            text = without(self._secrets(options), f"{type(error).__name__}: {error}")
            raise SourceUnavailable(f"data source {self.data_source}: {text}") from None
        return {"start": first, "end": end}

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return bool(end["start"] == end["end"])

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """The rows between the two offsets, in the partitions that the reader plans now, read on Spark's workers.

        What the reader raises there comes as a `RuntimeError` without the values of `connection_options`.
        """
        from lockstep.spark.stream_ranges import frame_of_range

        options, between = self._all_options(), (end["start"], end["end"])
        return frame_of_range(spark, self.data_source, options, self.schema, *between, self._secrets(options))

    def _all_options(self) -> dict[str, str]:
        if self._context is None:
            raise InvalidPipeline(f"source {self.data_source} was asked for rows before it was opened")
        found = {option: self._context.dsn(connection) for option, connection in self.connection_options.items()}
        return {**self.options, **found}

    def _secrets(self, options: Mapping[str, str]) -> tuple[str, ...]:
        values = [options[option] for option in self.connection_options]
        found = {secret for value in values for secret in (value, *_secrets_in(value))}
        return tuple(sorted(found, key=len, reverse=True))  # of two that overlap, the whole one first


def _secrets_in(value: str) -> Iterator[str]:
    """What may be a password in a URI, or behind a telling name, as it stands there and as it is meant.

    Which @ ends a login that has several, each reader decides for itself, and it may quote the pieces.
    """
    login = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
    named = [found[1] or found[2] or found[3] for found in _NAMED.finditer(value)]
    pieces = [piece for piece in re.split(r"[@:/?#\s\\]", login) if len(piece) > 1]
    for secret in (login, *pieces, *named):
        yield from filter(None, (secret, unquote(secret)))
