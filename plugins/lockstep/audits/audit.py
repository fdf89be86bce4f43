"""Audits and their frozen form. A plan stores the full question, so that neither a release nor an edit changes what is
asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Literal, Self, TypeAlias, get_args

from lockstep.definition.user_code import describe_version
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,119}")

Value: TypeAlias = str | int | float | bool | Decimal | date | datetime
Offence: TypeAlias = Literal["null", "not_in", "outside", "where"]


@dataclass(frozen=True)
class Key:
    """No two rows agree in all of these columns; those with a null in one aren't compared."""

    columns: tuple[str, ...]

    def to_json(self) -> Json:
        """The form that a plan freezes."""
        return {"offence": "twice", "columns": list(self.columns)}


@dataclass(frozen=True)
class Newest:
    """The newest value of `column` reaches the end of the epoch's interval (without one: when it was planned), but for
    `within`."""

    column: str
    within: timedelta

    def to_json(self) -> Json:
        """The form that a plan freezes."""
        return {"offence": "stale", "column": self.column, "within": self.within // timedelta(microseconds=1)}


@dataclass(frozen=True)
class Rule:
    """A test of a single row. A row offends if its `column` is null, has none of `values`, or lies outside the bounds;
    or if `condition` (SQL of the engine that evaluates it) is true. Nulls offend only in the first case."""

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
        """The form that a plan freezes."""
        frozen: dict[str, Json] = {"offence": self.offence}
        if self.column is not None:
            frozen["column"] = self.column
        if self.values:
            frozen["values"] = [_plain(value) for value in self.values]
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if bound is not None:
                frozen[name] = _plain(bound)
        return frozen if self.condition is None else {**frozen, "condition": self.condition}

    @classmethod
    def from_json(cls, value: Json) -> Rule:
        """Raises `InvalidPipeline` for one that this version of Lockstep doesn't know."""
        bounds = {name: _value(value[name]) for name in ("at_least", "at_most") if name in value}
        values = tuple(map(_value, value.get("values", ())))
        return cls(value["offence"], value.get("column"), values, condition=value.get("condition"), **bounds)


Asked: TypeAlias = Rule | Key | Newest


def asked_from_json(value: Json) -> Asked:
    """The rule, key or newest value that a plan froze. Raises `InvalidPipeline` for a kind that this version doesn't
    know."""
    match value["offence"]:
        case "twice":
            return Key(tuple(value["columns"]))
        case "stale":
            return Newest(value["column"], timedelta(microseconds=value["within"]))
    return Rule.from_json(value)


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


def _value(frozen: Json) -> Value:
    if isinstance(frozen, dict):
        [(kind, text)] = frozen.items()
        return _READ[kind](text)
    value: Value = frozen
    return value


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A question to the sealed output of an epoch. `blocking`: what offends holds the epoch until a person answers;
    otherwise it is a warning that the ledger keeps. Raises `InvalidPipeline`."""

    name: str
    outputs: tuple[str, ...]
    blocking: bool = True
    quarantine: bool = False  #: rows that offend leave the output before the seal, and the epoch goes on without them

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidPipeline(
                f"audit name {self.name!r}: a name starts with a letter and has at most 120 letters, digits, '_', '.' "
                "or '-'"
            )
        if not self.outputs:
            raise InvalidPipeline(f"audit {self.name}: say which outputs it looks at")
        if self.quarantine and self.blocking:
            raise InvalidPipeline(f"audit {self.name}: rows that go to quarantine hold no epoch: say blocking=False")
        if self.quarantine and self.rule is None:
            raise InvalidPipeline(
                f"audit {self.name} judges the whole output, not its rows one by one, so none of them can go to "
                "quarantine: let it hold the epoch, or ask not_null, accepted_values, in_range or none_where"
            )

    @property
    def rule(self) -> Rule | None:
        """The row test, if the audit judges each row by itself."""
        return None

    def spec(self) -> Json:
        """The form that a plan freezes."""
        base = {"kind": self.kind, "name": self.name, "outputs": list(self.outputs), "blocking": self.blocking}
        return {**base, **({"quarantine": True} if self.quarantine else {}), **self._asks()}

    def _asks(self) -> dict[str, Json]:
        """The arguments of this kind of audit, by name."""
        raise NotImplementedError

    @classmethod
    def _of(cls, spec: dict[str, Json]) -> Self:
        return cls(**spec)


@dataclass(frozen=True, kw_only=True)
class Query(Audit):
    """`query`: SQL that gives the rows that offend. `columns`: those of its one output that it reads; None: it may read
    any. `asked`: the same so that Spark can ask it, where that can be said; what goes to quarantine goes by it."""

    query: str
    columns: tuple[str, ...] | None = None
    asked: Asked | None = None

    kind = "query"

    @property
    def rule(self) -> Rule | None:
        return self.asked if isinstance(self.asked, Rule) else None

    def _asks(self) -> dict[str, Json]:
        asks = {"query": self.query, "columns": list(self.columns) if self.columns is not None else None}
        return {**asks, "asked": self.asked.to_json()} if self.asked else asks

    @classmethod
    def _of(cls, spec: dict[str, Json]) -> Self:
        columns, test = spec.pop("columns"), spec.pop("asked", None)
        read = tuple(columns) if columns is not None else None
        return cls(columns=read, asked=asked_from_json(test) if test else None, **spec)


@dataclass(frozen=True, kw_only=True)
class Matches(Audit):
    """`measure`, an SQL aggregate, is in each group `by` these columns of its one output what `query` gives at
    `connection`, give or take the share `within` of that."""

    measure: str
    by: tuple[str, ...]
    within: float
    connection: str
    query: str

    kind = "matches"

    def _asks(self) -> dict[str, Json]:
        compared = {"measure": self.measure, "by": list(self.by), "within": self.within}
        return {**compared, "connection": self.connection, "query": self.query}

    @classmethod
    def _of(cls, spec: dict[str, Json]) -> Self:
        return cls(by=tuple(spec.pop("by")), **spec)


class Over(StrEnum):
    """The form in which a user's function gets the rows."""

    ARROW = "arrow"  #: all rows as a pyarrow.Table, in the task
    SPARK = "spark"  #: a DataFrame of them


@dataclass(frozen=True, kw_only=True)
class Function(Audit):
    """`function`, "module:function", gets the rows of its one output and returns those that offend. `version`: what
    `describe_version` said when the plan was made; None: as it is now."""

    function: str
    over: str = Over.ARROW
    version: str | None = None

    kind = "function"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.over not in list(Over):
            choices = " or ".join(repr(str(kind)) for kind in Over)
            raise InvalidPipeline(f"audit {self.name}: over is {self.over!r}: say {choices}")
        if not isinstance(self.function, str) or ":" not in self.function:
            raise InvalidPipeline(f"audit {self.name}: {self.function!r} names no function: give module:function")

    def _asks(self) -> dict[str, Json]:
        try:
            version = self.version or describe_version(self.function)
        except InvalidPipeline as error:
            raise InvalidPipeline(f"audit {self.name}: {error}") from error
        return {"function": self.function, "over": str(self.over), "version": version}


@dataclass(frozen=True, kw_only=True)
class RowCount(Audit):
    """So many rows, as the seal counted them."""

    at_least: int | None
    at_most: int | None

    kind = "row_count"

    def _asks(self) -> dict[str, Json]:
        return {"at_least": self.at_least, "at_most": self.at_most}


@dataclass(frozen=True, kw_only=True)
class Volume(Audit):
    """The row count is within the share `within` of the median of the last `epochs` decided epochs."""

    epochs: int
    within: float

    kind = "volume"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.epochs <= 1000 or not self.within >= 0:
            raise InvalidPipeline(f"audit {self.name}: epochs must be 1 to 1000, and within at least 0")

    def _asks(self) -> dict[str, Json]:
        return {"epochs": self.epochs, "within": self.within}


@dataclass(frozen=True, kw_only=True)
class Steady(Volume):
    """Like `Volume`, for `measure`: an SQL query that returns one number."""

    measure: str

    kind = "steady"

    def _asks(self) -> dict[str, Json]:
        return {**super()._asks(), "measure": self.measure}


@dataclass(frozen=True, kw_only=True)
class Conserved(Audit):
    """Rows are conserved as `lockstep.definition.conservation` declares; violations are sealed and reported."""

    kind = "conserved"

    def _asks(self) -> dict[str, Json]:
        return {}


_KINDS: dict[str, type[Audit]] = {
    audit_class.kind: audit_class for audit_class in (Query, Matches, Function, RowCount, Volume, Steady, Conserved)
}


def outputs_conserved(specs: Iterable[Json]) -> tuple[str, ...]:
    """Outputs for which the audits of a plan report whether rows were conserved."""
    audits = [audit for audit in map(audit_from_spec, specs) if isinstance(audit, Conserved)]
    return tuple(dict.fromkeys(output for audit in audits for output in audit.outputs))


def quarantining(specs: Iterable[Json]) -> tuple[Json, ...]:
    """Audits of a plan that send rows to quarantine."""
    return tuple(spec for spec in specs if spec.get("quarantine"))


def rules_by_output(specs: Iterable[Json]) -> dict[str, dict[str, Rule]]:
    """{output: {audit: rule that sends a row to quarantine}}. Raises `InvalidPipeline`."""
    rules: dict[str, dict[str, Rule]] = {}
    for audit in map(audit_from_spec, quarantining(specs)):
        if (rule := audit.rule) is not None:
            rules.setdefault(audit.outputs[0], {})[audit.name] = rule
    return rules


def audit_from_spec(spec: Json) -> Audit:
    """The audit that a plan froze. Raises `InvalidPipeline` for one that this version of Lockstep doesn't know."""
    arguments = dict(spec)
    kind = _KINDS.get(arguments.pop("kind"))
    if kind is None:
        raise InvalidPipeline(f"audit {spec.get('name')!r} is of kind {spec['kind']!r}: upgrade Lockstep")
    return kind._of({**arguments, "outputs": tuple(arguments["outputs"])})


def require_sound(
    pipeline: str, audits: Iterable[Audit], outputs: tuple[str, ...], adopted: Collection[str] = ()
) -> None:
    """Raise `InvalidPipeline` unless each audit has its own name and looks at outputs that a sink takes. `adopted`:
    outputs whose files become a table's; Spark doesn't read these for audits."""
    seen: set[str] = set()
    looked_at: dict[str, str] = {}
    for audit in audits:
        if not isinstance(audit, Audit):
            raise InvalidPipeline(
                f"pipeline {pipeline}: {audit!r} in audits is no audit: make them with lockstep.audits, such as "
                "not_null('orders', 'id')"
            )
        if audit.name in seen:
            raise InvalidPipeline(f"pipeline {pipeline}: two audits are called {audit.name}: give one of them name=…")
        seen.add(audit.name)
        if missing := sorted(set(audit.outputs) - set(outputs)):
            raise InvalidPipeline(
                f"pipeline {pipeline}: audit {audit.name} looks at {', '.join(missing)}, which no sink takes; "
                f"the sinks take {', '.join(outputs)}"
            )
        for output in audit.outputs:
            if (twin := looked_at.setdefault(output.casefold(), output)) != output:
                raise InvalidPipeline(
                    f"pipeline {pipeline}: audits look at the outputs {twin} and {output}, which SQL can't tell apart: "
                    "rename one"
                )
        if isinstance(audit, Function) and audit.over == Over.SPARK and audit.outputs[0] in adopted:
            raise InvalidPipeline(
                f"pipeline {pipeline}: audit {audit.name} is over a DataFrame, and a table adopts the files of output "
                f"{audit.outputs[0]}, which Spark doesn't read for audits: say over='arrow'"
            )
