"""What rows must not be, told so that DuckDB and Spark judge them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline

Value: TypeAlias = str | int | float | bool | Decimal | date | datetime
Offence: TypeAlias = Literal["null", "not_in", "outside", "where"]


@dataclass(frozen=True)
class Key:
    """No two rows agree in all of these columns; those with a null in one aren't compared."""

    columns: tuple[str, ...]

    def to_json(self) -> Json:
        """What a plan freezes."""
        return {"offence": "twice", "columns": list(self.columns)}


@dataclass(frozen=True)
class Newest:
    """The newest value of `column` reaches the end of the epoch's interval (without one: when it was planned), but for
    `within`."""

    column: str
    within: timedelta

    def to_json(self) -> Json:
        """What a plan freezes."""
        return {"offence": "stale", "column": self.column, "within": self.within // timedelta(microseconds=1)}


@dataclass(frozen=True)
class Rule:
    """Of one row, whatever the others are. It offends where its `column` is null, has none of `values`, or lies outside
    the bounds; or where `condition`, SQL of the engine that is asked, is true. A null offends in the first alone."""

    offence: Offence
    column: str | None = None
    values: tuple[Value, ...] = ()
    at_least: Value | None = None
    at_most: Value | None = None
    condition: str | None = None

    def __post_init__(self) -> None:
        if self.offence not in get_args(Offence):
            raise InvalidPipeline(f"an audit's rule is {self.offence!r}: upgrade Lockstep")

    def to_json(self) -> Json:
        """What a plan freezes."""
        told: dict[str, Json] = {"offence": self.offence}
        if self.column is not None:
            told["column"] = self.column
        if self.values:
            told["values"] = [_plain(value) for value in self.values]
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if bound is not None:
                told[name] = _plain(bound)
        return told if self.condition is None else {**told, "condition": self.condition}

    @classmethod
    def from_json(cls, told: Json) -> Rule:
        """Raises `InvalidPipeline` for one that this version of Lockstep doesn't know."""
        bounds = {name: _value(told[name]) for name in ("at_least", "at_most") if name in told}
        values = tuple(map(_value, told.get("values", ())))
        return cls(told["offence"], told.get("column"), values, condition=told.get("condition"), **bounds)


Asked: TypeAlias = Rule | Key | Newest


def asked_from_json(told: Json) -> Asked:
    """What a plan froze. Raises `InvalidPipeline` for what this version of Lockstep doesn't know."""
    match told["offence"]:
        case "twice":
            return Key(tuple(told["columns"]))
        case "stale":
            return Newest(told["column"], timedelta(microseconds=told["within"]))
    return Rule.from_json(told)


def _plain(value: Value) -> Json:
    """JSON has no dates and one kind of number."""
    match value:
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal():
            return {"decimal": str(value)}
    return value


_READ: Mapping[str, Callable[[str], Value]] = MappingProxyType(
    {"datetime": datetime.fromisoformat, "date": date.fromisoformat, "decimal": Decimal}
)


def _value(told: Json) -> Value:
    if isinstance(told, dict):
        [(kind, text)] = told.items()
        return _READ[kind](text)
    value: Value = told
    return value
