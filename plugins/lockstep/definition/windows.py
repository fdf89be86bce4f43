"""The definition of event-time windows and sessions: their columns, their times, and the state that they keep."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Literal

from lockstep.definition.ddl import fields_of
from lockstep.definition.keyed_state import KeyedState
from lockstep.epoch import require_name
from lockstep.errors import InvalidPipeline

START, END, REVISION = "window_start", "window_end", "revision"  #: columns of the results
MISSED = "windows_missed"  #: column of a sliding window's late rows
EMITTED, DUE = "emitted", "due"  #: columns of the state
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_DECIMAL = re.compile(r"DECIMAL\(\d+(?:,(\d+))?\)")
_MARKS = "partition STRING, seen TIMESTAMP, idle INT, watermark TIMESTAMP, forgotten TIMESTAMP, definition STRING"
_MAX_WINDOWS = 10_000  #: of a row
_ZERO, _TICK = timedelta(0), timedelta(microseconds=1)
_LONGEST = timedelta(days=4000 * 366)  #: two of them fit between the years 1 and 9999
ABSORBED = "absorbed"  #: column of the results: this session is part of another now, or has another start


class AggregateFunction(StrEnum):
    """An aggregate function that can be folded part by part, in any order."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


@dataclass(frozen=True)
class Aggregate:
    """One column of the results: `function` over the SQL expression `argument` ("*": rows), of the Spark `type`."""

    name: str
    function: AggregateFunction
    argument: str
    type: str

    def state_columns(self) -> dict[str, str]:
        """The columns of the state with their types: an average is a sum and a count."""
        if self.function is not AggregateFunction.AVG:
            return {self.name: self.type}
        decimal = _DECIMAL.fullmatch(self.type)
        total = f"DECIMAL(38,{decimal[1] or 0})" if decimal else self.type
        return {f"{self.name}__sum": total, f"{self.name}__count": "BIGINT"}


@dataclass(frozen=True, kw_only=True)
class WindowDefinition(ABC):
    """The arguments of every kind of windows. Any process can load it. Raises `InvalidPipeline`."""

    lengths: ClassVar[tuple[str, ...]]  #: fields that are time spans, and must not change while windows are kept

    schema: str
    key: Sequence[str]
    time: str
    aggregates: Mapping[str, str]
    out_of_order: timedelta = _ZERO
    lateness: timedelta = _ZERO
    emit: Literal["final", "updates"] = "final"
    partition: str | None = None
    idle_epochs: int | None = None
    name: str = "windows"
    buckets: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple(self.key))
        require_name("windows", self.watermark_name)
        self._require_sound_columns()
        self._require_sound_times()
        if self.emit not in ("final", "updates"):
            raise self._refused(f"emit must be 'final' or 'updates', is {self.emit!r}")
        if self.idle_epochs is not None and (self.partition is None or self.idle_epochs < 1):
            raise self._refused("idle_epochs must be at least 1, and needs partition=")

    @property
    @abstractmethod
    def span(self) -> timedelta:
        """The greatest time from an event to the end of its window, without later events."""

    @property
    def found_by(self) -> Sequence[str]:
        """The columns by which the state finds a window."""
        return [*self.key, START]

    @property
    def own_columns(self) -> list[str]:
        """Columns of the results, the late rows and the state besides the key and the aggregates."""
        return [START, END, REVISION, EMITTED, DUE]

    def columns(self) -> dict[str, str]:
        """The declared type of each column, by its usual name in capitals."""
        try:
            fields = fields_of(self.schema)
        except InvalidPipeline as error:
            raise self._refused(f"schema={self.schema!r}: {error}") from None
        if wrong := [field.name for field in fields if not re.fullmatch(r"[A-Za-z]\w*", field.name)]:
            raise self._refused(
                f"schema={self.schema!r}: columns {wrong} need quotes: take names of letters and digits"
            )
        return {field.name: field.type for field in fields}

    def aggregate_columns(self) -> list[Aggregate]:
        """The aggregates, in declared order."""
        types = self.columns()
        return [self._aggregate(name, text, types[name]) for name, text in self.aggregates.items()]

    def state(self) -> dict[str, KeyedState]:
        """The states that the pipeline declares: the windows that are kept, and the watermark."""
        types = self.columns()
        state_columns = [
            f"{column} {kind}"
            for aggregate in self.aggregate_columns()
            for column, kind in aggregate.state_columns().items()
        ]
        fields = [*(f"{column} {types[column]}" for column in self.key), f"{START} TIMESTAMP", f"{END} TIMESTAMP"]
        fields += [*state_columns, f"{EMITTED} INT", f"{DUE} TIMESTAMP"]
        return {
            self.name: KeyedState(", ".join(fields), [*self.key, START], self.buckets, DUE, self.found_by),
            self.watermark_name: KeyedState(_MARKS, ["partition"], 1),
        }

    @property
    def watermark_name(self) -> str:
        """Name of the state with the watermark."""
        return _watermark_of(self.name)

    def definition(self) -> str:
        """The part of the definition that must not change while windows are kept."""
        times = [f"{name} {getattr(self, name)}" for name in self.lengths]
        return "; ".join(
            [
                *times,
                f"emit {self.emit}",
                *(f"{aggregate.name} {aggregate.function}" for aggregate in self.aggregate_columns()),
            ]
        )

    def _aggregate(self, name: str, text: str, kind: str) -> Aggregate:
        call = _CALL.fullmatch(text)
        functions = list(AggregateFunction)
        if call is None or call[1].lower() not in functions or re.match(r"\s*DISTINCT\b", call[2], re.I):
            raise self._refused(f"aggregate {name}={text!r} must be one of {', '.join(functions)} over an expression")
        aggregate = Aggregate(name, AggregateFunction(call[1].lower()), call[2].strip(), kind)
        if (aggregate.argument == "*" and aggregate.function is not AggregateFunction.COUNT) or not aggregate.argument:
            raise self._refused(f"aggregate {name}={text!r}: only count takes *")
        self._require_fit(aggregate)
        return aggregate

    def _require_fit(self, aggregate: Aggregate) -> None:
        decimal = _DECIMAL.fullmatch(aggregate.type) is not None
        match aggregate.function:
            case AggregateFunction.COUNT:
                fits, expected = aggregate.type == "BIGINT", "BIGINT"
            case AggregateFunction.SUM:
                fits, expected = aggregate.type in ("BIGINT", "DOUBLE") or decimal, "BIGINT, DECIMAL(p,s) or DOUBLE"
            case AggregateFunction.AVG:
                fits, expected = aggregate.type == "DOUBLE" or decimal, "DECIMAL(p,s) or DOUBLE"
            case AggregateFunction.MIN | AggregateFunction.MAX:
                return
        if not fits:
            raise self._refused(
                f"{aggregate.name} is a {aggregate.function}: declare it {expected}, not {aggregate.type}"
            )

    def _require_sound_columns(self) -> None:
        declared = set(self.columns())
        if not self.key or not self.aggregates or declared != {*self.key, *self.aggregates}:
            raise self._refused(
                f"schema names {sorted(declared)}: it must name each column of the key {list(self.key)} and each "
                f"aggregate {list(self.aggregates)}, at least one of both, and nothing else"
            )
        state_columns = [
            column
            for aggregate in self.aggregate_columns()
            if aggregate.function is AggregateFunction.AVG
            for column in aggregate.state_columns()
        ]
        counted = Counter(name.lower() for name in [*self.key, *self.aggregates, *self.own_columns, *state_columns])
        if twice := [name for name, count in counted.items() if count > 1]:
            raise self._refused(f"the columns {twice} are named twice, or reserved for windows: use other names")

    def _require_sound_times(self) -> None:
        if self.out_of_order < _ZERO or self.lateness < _ZERO:
            raise self._refused("out_of_order and lateness can't be below 0")
        spans = [*self.lengths, "out_of_order", "lateness"]
        if max(abs(getattr(self, name)) for name in spans) > _LONGEST:
            raise self._refused(f"{', '.join(spans[:-1])} and lateness can't be above 4000 years")

    def _refused(self, why: str) -> InvalidPipeline:
        return InvalidPipeline(f"windows {self.name}: {why}")


@dataclass(frozen=True, kw_only=True)
class SteppedDefinition(WindowDefinition):
    """The arguments of `lockstep.compute.declared_windows.Windows`. Raises `InvalidPipeline`."""

    lengths: ClassVar[tuple[str, ...]] = ("size", "step", "offset")

    size: timedelta
    slide: timedelta | None = None
    offset: timedelta = _ZERO

    @property
    def step(self) -> timedelta:
        """The time from one window's start to the next."""
        return self.slide or self.size

    @property
    def span(self) -> timedelta:
        return self.size

    @property
    def own_columns(self) -> list[str]:
        return [*super().own_columns, MISSED]

    def _require_sound_times(self) -> None:
        if self.size <= _ZERO or self.step <= _ZERO or self.size % self.step:
            raise self._refused(f"size {self.size} must be a whole multiple of slide {self.step}, and both above 0")
        if self.size // self.step > _MAX_WINDOWS:
            raise self._refused(f"a row would be in {self.size // self.step} windows, more than {_MAX_WINDOWS}")
        super()._require_sound_times()


def only_windows(state: Mapping[str, KeyedState]) -> bool:
    """True if there are states, and all are windows and their watermarks, by their schemas."""
    marks = {name for name, declared in state.items() if declared.schema == _MARKS}
    return bool(state) and {_watermark_of(name) for name in set(state) - marks} == marks


def _watermark_of(name: str) -> str:
    return f"{name}_watermark"


def micros(span: timedelta) -> int:
    """A time span in microseconds, Spark's own unit."""
    return span // _TICK


@dataclass(frozen=True, kw_only=True)
class SessionDefinition(WindowDefinition):
    """The arguments of `lockstep.compute.declared_windows.Sessions`. Raises `InvalidPipeline`."""

    lengths: ClassVar[tuple[str, ...]] = ("gap",)

    gap: timedelta

    @property
    def span(self) -> timedelta:
        return self.gap

    @property
    def found_by(self) -> Sequence[str]:
        return self.key  # a row's session isn't known before those of its key are

    @property
    def own_columns(self) -> list[str]:
        return [*super().own_columns, ABSORBED]

    @property
    def retracts(self) -> bool:
        """True if a session that was emitted may be absorbed."""
        return self.emit == "updates" or self.lateness > timedelta(0)

    def _require_sound_times(self) -> None:
        if self.gap <= timedelta(0):
            raise self._refused(f"gap {self.gap} must be above 0")
        super()._require_sound_times()
