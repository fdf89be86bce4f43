"""Columns from outside systems within a transform, as Flink's asynchronous I/O.

The answers are sealed in the WAL with the rows. Publish, repair and verify read them there and send no request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.types import StringType, StructField, StructType

from lockstep.compute._counting import ObservedFrame
from lockstep.compute._lookups import Lookup
from lockstep.errors import InvalidPipeline
from lockstep.spark._pyspark import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def enrich(
    frame: DataFrame,
    function: Callable[..., Any] | str,
    *,
    schema: str,
    keys: Sequence[str],
    client: Callable[[], Any] | None = None,
    batch: int | None = None,
    concurrency: int = 16,
    timeout: float = 10.0,
    retries: int = 3,
    backoff: float = 0.2,
    ordered: bool = True,
    on_failure: Literal["fail", "null"] = "fail",
    error: str | None = None,
) -> DataFrame:
    """`frame` with the columns of `schema` (Spark DDL) as `function` answers them for each row's `keys`.

    `function`: a plain or an async function, or "module:name" of one that the workers can import. It gets a dict of one
    row's key columns, and returns a mapping with values of the new columns, or None for nulls; with `batch` it gets a
    list of up to so many dicts, and returns as many answers. `client`: makes what each task opens first (an HTTP
    client, a connection; a context manager, plain or async) and gives the function as first argument.

    Each task has up to `concurrency` requests at a time, each with a timeout of `timeout` seconds. A failed request is
    repeated `retries` times after `backoff` seconds, doubled each time, with jitter. If all fail, the execution fails,
    or with on_failure="null" the columns are null and the column `error`, if given, has the reason. Equal keys among
    10,000 consecutive rows are sent once. `ordered`: rows keep their order within a partition; else they are in the
    order of the answers. Raises `InvalidPipeline`.
    """
    answers = _schema_of(frame, schema)
    new = [*answers.names, *([error] if error is not None else [])]
    _require_sound(frame, keys, new, (batch, concurrency, retries + 1), on_failure, error)
    lookup = Lookup(
        function=function,
        keys=tuple(keys),
        answers=to_arrow_schema(answers),
        client=client,
        batch=batch,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        backoff=backoff,
        ordered=ordered,
        fails=on_failure == "fail",
        error=error,
    )
    error_field = [StructField(error, StringType())] if error is not None else []
    enriched = frame.mapInArrow(lookup.__call__, StructType([*frame.schema.fields, *answers.fields, *error_field]))
    enrichments = _collecting.get()
    return enriched if enrichments is None else enrichments.add(enriched)


@dataclass
class Enrichments:
    """The enrichments that one run of a transform makes, in order. `checkpoints`: answers of an earlier run, by
    number."""

    checkpoints: Mapping[int, DataFrame] = field(default_factory=dict)
    observed: list[ObservedFrame] = field(default_factory=list)

    def add(self, frame: DataFrame) -> DataFrame:
        observed = ObservedFrame.of(frame, rows="count(1)")
        self.observed.append(observed)
        return self.checkpoints.get(len(self.observed) - 1, observed.frame)

    def first_shared(self, outputs: Collection[DataFrame]) -> int | None:
        """Number of the first enrichment that the outputs read more than once: each read would send requests, and may
        get other answers."""
        for number, observed in enumerate(self.observed):
            if number not in self.checkpoints and sum(map(observed.uses_in, outputs)) > 1:
                return number
        return None


_collecting: ContextVar[Enrichments | None] = ContextVar("enrichments", default=None)


@contextmanager
def collecting_enrichments(enrichments: Enrichments) -> Iterator[None]:
    """Collect what `enrich` makes in `enrichments`."""
    token = _collecting.set(enrichments)
    try:
        yield
    finally:
        _collecting.reset(token)


def has_enrichments() -> bool:
    """True if the running transform has called `enrich`."""
    return (enrichments := _collecting.get()) is not None and bool(enrichments.observed)


def run_enrichments_once(transform: Callable[[], Mapping[str, DataFrame]]) -> Mapping[str, DataFrame]:
    """The transform's outputs. Every enrichment with more than one reader runs now, once, and is kept."""
    checkpoints: dict[int, DataFrame] = {}
    while True:
        enrichments = Enrichments(checkpoints)
        with collecting_enrichments(enrichments):
            outputs = transform()
        shared = enrichments.first_shared(outputs.values())
        if shared is None:
            return outputs
        checkpoints[shared] = enrichments.observed[shared].checkpoint()


def _schema_of(frame: DataFrame, schema: str) -> StructType:
    parsed = frame.sparkSession.createDataFrame([], schema).schema
    return StructType([StructField(field.name, field.dataType, nullable=True) for field in parsed.fields])


def _require_sound(
    frame: DataFrame,
    keys: Sequence[str],
    new: list[str],
    counts: tuple[int | None, ...],
    on_failure: str,
    error: str | None,
) -> None:
    if unknown := sorted(set(keys) - set(frame.columns)):
        raise InvalidPipeline(f"enrich: keys {unknown} are no columns of the frame, which has {frame.columns}")
    if not keys or len({*frame.columns, *new}) < len(frame.columns) + len(new):
        raise InvalidPipeline(f"enrich: give keys, and names for {new} that the frame's {frame.columns} don't have")
    if on_failure not in ("fail", "null") or (error is not None and on_failure == "fail"):
        raise InvalidPipeline("enrich: on_failure must be 'fail', or 'null', which alone has an error column")
    if any(count is not None and count < 1 for count in counts):
        raise InvalidPipeline("enrich: batch and concurrency must be at least 1, retries at least 0")
