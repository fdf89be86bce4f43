"""Streaming readers of Spark's Python data source API as sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

from lockstep.epoch import Interval, Json, KeyedBy, Position
from lockstep.errors import InvalidPipeline, LockstepError, SourceRefused, SourceUnavailable
from lockstep.sources.base import OpenSource, Source, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: password=…, "secret": "…" and similar, also quoted
_NAMED = re.compile(
    r"""(?i)(?:password|passwd|pwd|secret|token|(?:api|access|account|private)[_-]?key)["']?\s*[=:]\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s&;,}]+))"""
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSourceSource(Source):
    """A `pyspark.sql.datasource.DataSource` with a `streamReader` or a `simpleStreamReader`; a cursor source.

    `data_source`: its class as `module:Class`, importable where epochs are planned and on Spark's workers. `options`:
    its options. `connection_options`: {option: connection id} for options whose values are the connections' DSNs or
    URIs, which no plan contains. `schema`: Spark DDL, for a class without `schema()`. `max_rows_per_epoch`,
    `max_files_per_epoch`, `max_bytes_per_epoch`: at most one limit, for readers that support one; without it the
    reader's default applies.

    The class must guarantee that the same two offsets always mean the same rows; violations can't be detected.
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
            raise InvalidPipeline(f"source {self.data_source}: give at most one limit per epoch, at least 1: {limits}")

    def _limits(self) -> list[tuple[str, int]]:
        limits = {"rows": self.max_rows_per_epoch, "files": self.max_files_per_epoch, "bytes": self.max_bytes_per_epoch}
        return [(kind, number) for kind, number in limits.items() if number is not None]

    @property
    def limit(self) -> tuple[str, int] | None:
        """An epoch's limit as ("rows" | "files" | "bytes", number); None for the reader's default."""
        return next(iter(self._limits()), None)

    def spec(self) -> Json | None:
        """Return None if an option looks like a secret, because plans must not contain one."""
        for name, value in self.options.items():
            if _NAMED.search(f"{name}={value}") or any(_secrets_in(value)):
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
    """Creates a new reader for each call."""

    def __init__(self, source: DataSourceSource, context: SourceContext) -> None:
        self._source, self._context = source, context

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Return the end offset that the reader reports. Raises `SourceUnavailable` for any error of the reader."""
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
        """Return the rows between the two offsets, read on Spark's workers in partitions that the reader plans now.

        Errors of the reader are raised there as `RuntimeError` without the values of `connection_options`.
        """
        from lockstep.spark.python_readers import frame_of_range

        source, between = self._source, (end["start"], end["end"])
        return frame_of_range(spark, source.data_source, self._options, source.schema, *between, self._secrets)

    @property
    def _hidden(self) -> dict[str, str]:
        """The options from connections, which no plan contains."""
        options = self._source.connection_options
        return {option: str(self._context.dsn(connection)) for option, connection in options.items()}

    @property
    def _options(self) -> dict[str, str]:
        return {**self._source.options, **self._hidden}

    @property
    def _secrets(self) -> tuple[str, ...]:
        secrets = {secret for value in self._hidden.values() for secret in (value, *_secrets_in(value))}
        return tuple(sorted(secrets, key=len, reverse=True))  # longer ones first: shorter ones may be parts of them


def _secrets_in(value: str) -> Iterator[str]:
    """Yield possible passwords in a URI, or after a name such as "password", both as written and percent-decoded.

    Readers disagree on which @ ends a login that contains several, and may quote parts of it in errors.
    """
    login = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
    values = [match[1] or match[2] or match[3] for match in _NAMED.finditer(value)]
    pieces = [piece for piece in re.split(r"[@:/?#\s\\]", login) if len(piece) > 1]
    for secret in (login, *pieces, *values):
        yield from filter(None, (secret, unquote(secret)))


class SequenceSource(DataSourceSource):
    """The integers from `first` to `last` - 1 in a column `value BIGINT`, `rows_per_epoch` of them per epoch."""

    operational: ClassVar[frozenset[str]] = frozenset({"rows_per_epoch", "partitions"})

    def __init__(self, rows_per_epoch: int, *, first: int = 0, last: int | None = None, partitions: int = 2) -> None:
        options = {"first": str(first), "partitions": str(partitions)}
        super().__init__(
            "lockstep.compute.sequence:SequenceDataSource",
            options=options if last is None else {**options, "last": str(last)},
            max_rows_per_epoch=rows_per_epoch,
        )

    def arguments(self) -> dict[str, Json]:
        numbers = {name: int(value) for name, value in self.options.items()}
        return {"rows_per_epoch": self.max_rows_per_epoch, **numbers}
