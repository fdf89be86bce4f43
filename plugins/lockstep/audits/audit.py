"""What an audit is, and how a plan freezes it: as what it asks, so that no release and no edit asks something else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from lockstep.audits.rule import Asked, Rule, asked_from_json
from lockstep.definition.user_code import describe_version
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,119}")


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
        """By which one row offends, whatever the others are."""
        return None

    def spec(self) -> Json:
        """What a plan freezes."""
        base = {"kind": self.kind, "name": self.name, "outputs": list(self.outputs), "blocking": self.blocking}
        return {**base, **({"quarantine": True} if self.quarantine else {}), **self._asks()}

    def _asks(self) -> dict[str, Json]:
        """What sets it apart, by the names of its arguments."""
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
        columns, asked = spec.pop("columns"), spec.pop("asked", None)
        read = tuple(columns) if columns is not None else None
        return cls(columns=read, asked=asked_from_json(asked) if asked else None, **spec)


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
    """What a function of one's own gets."""

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
            known = " or ".join(repr(str(one)) for one in Over)
            raise InvalidPipeline(f"audit {self.name}: over is {self.over!r}: say {known}")
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
    """As many rows as in the median of the `epochs` decided ones before, give or take the share `within`."""

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
    """The same of `measure`, an SQL query that gives one number."""

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
    one.kind: one for one in (Query, Matches, Function, RowCount, Volume, Steady, Conserved)
}


def outputs_conserved(specs: Iterable[Json]) -> tuple[str, ...]:
    """Of which outputs the audits of a plan tell whether rows were conserved."""
    found = [one for one in map(audit_from_spec, specs) if isinstance(one, Conserved)]
    return tuple(dict.fromkeys(output for one in found for output in one.outputs))


def quarantining(specs: Iterable[Json]) -> tuple[Json, ...]:
    """Those of a plan's audits by which rows go to quarantine."""
    return tuple(spec for spec in specs if spec.get("quarantine"))


def rules_by_output(specs: Iterable[Json]) -> dict[str, dict[str, Rule]]:
    """By output and by the audit's name, what sends a row to quarantine. Raises `InvalidPipeline`."""
    found: dict[str, dict[str, Rule]] = {}
    for one in map(audit_from_spec, quarantining(specs)):
        if (rule := one.rule) is not None:
            found.setdefault(one.outputs[0], {})[one.name] = rule
    return found


def audit_from_spec(spec: Json) -> Audit:
    """The audit that a plan froze. Raises `InvalidPipeline` for one that this version of Lockstep doesn't know."""
    known = dict(spec)
    kind = _KINDS.get(known.pop("kind"))
    if kind is None:
        raise InvalidPipeline(f"audit {spec.get('name')!r} is of kind {spec['kind']!r}: upgrade Lockstep")
    return kind._of({**known, "outputs": tuple(known["outputs"])})


def require_sound(
    pipeline: str, audits: Iterable[Audit], outputs: tuple[str, ...], adopted: Collection[str] = ()
) -> None:
    """Raise `InvalidPipeline` unless each has a name of its own and looks at outputs that a sink takes. `adopted`:
    those whose files become a table's, which Spark doesn't read for audits."""
    seen: set[str] = set()
    looked_at: dict[str, str] = {}
    for one in audits:
        if not isinstance(one, Audit):
            raise InvalidPipeline(
                f"pipeline {pipeline}: {one!r} in audits is no audit: make them with lockstep.audits, such as "
                "not_null('orders', 'id')"
            )
        if one.name in seen:
            raise InvalidPipeline(f"pipeline {pipeline}: two audits are called {one.name}: give one of them name=…")
        seen.add(one.name)
        if missing := sorted(set(one.outputs) - set(outputs)):
            raise InvalidPipeline(
                f"pipeline {pipeline}: audit {one.name} looks at {', '.join(missing)}, which no sink takes; the sinks "
                f"take {', '.join(outputs)}"
            )
        for output in one.outputs:
            if (twin := looked_at.setdefault(output.casefold(), output)) != output:
                raise InvalidPipeline(
                    f"pipeline {pipeline}: audits look at the outputs {twin} and {output}, which SQL can't tell apart: "
                    "rename one"
                )
        if isinstance(one, Function) and one.over == Over.SPARK and one.outputs[0] in adopted:
            raise InvalidPipeline(
                f"pipeline {pipeline}: audit {one.name} is over a DataFrame, and a table adopts the files of output "
                f"{one.outputs[0]}, which Spark doesn't read for audits: say over='arrow'"
            )
