"""A pipeline's declaration of what its transform does with rows.

The seal proves it by counts of the epoch's own job: each row of a source is in its outputs as often as declared, or was
dropped for a declared reason. Nothing is read a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline

Join: TypeAlias = Literal["one_to_one", "many_to_one", "left"]
#: Names of columns that are the same in source and output, or the output's columns with the source's SQL expressions
Columns: TypeAlias = str | Sequence[str] | Mapping[str, str]
UNACCOUNTED = "unaccounted"  #: rows that a balance lacks, or has too many, if an audit judges them
QUARANTINED = "quarantined"  #: rows of an output that audits sent to quarantine
_COUNTED = ("in", "unmatched", UNACCOUNTED, QUARANTINED)  #: counts of a balance besides reasons and outputs


@dataclass(frozen=True)
class Conservation:
    """A rule for a transform's treatment of the rows of `sources`; made by `rows_of`. Each method returns a new one.

    Conditions and expressions are Spark SQL over the source's columns; `unmatched` is over the outputs'. Records that a
    source sends to quarantine aren't counted. Raises `InvalidPipeline`.
    """

    sources: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)  #: condition by reason; the first that is true counts
    array: str | None = None  #: each of its elements becomes a row
    outer: bool = False  #: a row without elements becomes one as well
    #: identifies a row: columns of the outputs, each with its expression over a source
    key: Mapping[str, str] = field(default_factory=dict)
    count: str | None = None  #: the outputs' column with the number of rows that a row stands for
    join: Join | None = None
    partner: str | None = None  #: the source that is joined one to one
    unmatched: str | None = None  #: true of an output's row without a partner

    def __post_init__(self) -> None:
        if self.join == "one_to_one" and (self.dropped or self.array is not None):
            raise InvalidPipeline(f"{self}: one_to_one means every row of both sides: none filtered, none exploded")

    def filtered(self, reason: str, condition: str) -> Conservation:
        """Declare that rows for which `condition` is true (not null) are dropped, for `reason`."""
        if not reason or reason in self.dropped or reason in _COUNTED:
            raise InvalidPipeline(f"{self}: a reason to drop rows needs a unique name, not {reason!r}")
        return replace(self, dropped={**self.dropped, reason: condition})

    def exploded(self, array: str, *, outer: bool = False) -> Conservation:
        """Declare that each element of `array` (an array or a map) becomes a row. `outer`: a row without elements stays
        one.

        Then elements are counted, also of rows that are filtered.
        """
        if self.array is not None:
            raise InvalidPipeline(f"{self}: say exploded once")
        return replace(self, array=array, outer=outer)

    def joined(
        self, join: Join, *, key: Columns, partner: str | None = None, unmatched: str | None = None
    ) -> Conservation:
        """Declare that each row is joined and stays one row.

        "many_to_one": it has exactly one partner. "one_to_one": and each row of source `partner` is joined, too.
        "left": it has at most one partner. `key`: identifies a row in the outputs (for one_to_one in both sources), as
        a lost row and a duplicate one have the right number together. `unmatched`: SQL that is true of an output's row
        without a partner; a left join counts these, any other join must have none.
        """
        if join not in get_args(Join):
            raise InvalidPipeline(f"{self}: a join is one of {', '.join(get_args(Join))}, not {join!r}")
        if self.key:
            raise InvalidPipeline(f"{self}: say joined or aggregated, and once")
        if (join == "one_to_one") != (partner is not None):
            raise InvalidPipeline(f"{self}: partner= names the other source of a one_to_one join, and of no other one")
        if join == "left" and unmatched is None:
            raise InvalidPipeline(f"{self}: of a left join say unmatched=, SQL that is true of a row without a partner")
        return replace(self, join=join, partner=partner, key=_columns(self, key), unmatched=unmatched)

    def aggregated(self, by: Columns, *, count: str) -> Conservation:
        """Declare that rows are grouped `by` these columns of the outputs; column `count` has the rows of each group.

        This proves that every row is counted once and in its group, but nothing about other aggregates.
        """
        if self.key:
            raise InvalidPipeline(f"{self}: say joined or aggregated, and once")
        return replace(self, key=_columns(self, by), count=count)

    def into(self, *outputs: str) -> Conservation:
        """Declare that each row that isn't dropped is in one of `outputs`, once."""
        if not outputs or len(set(outputs)) < len(outputs) or self.outputs:
            raise InvalidPipeline(f"{self}: say into() once, and each output once")
        if both := sorted({*outputs} & {*self.dropped, *_COUNTED}):
            raise InvalidPipeline(f"{self}: {both} is the name of another count: give the reason another name")
        return replace(self, outputs=outputs)

    @property
    def name(self) -> str:
        """Name of its balance."""
        return f"{', '.join(self.sources)} into {', '.join(self.outputs) or '…'}"

    @property
    def mirrored(self) -> Conservation | None:
        """The rule for the partner's rows; only a one_to_one join has it."""
        if self.join != "one_to_one" or self.partner is None:
            return None
        return Conservation((self.partner,), self.outputs, key=self.key)

    def __str__(self) -> str:
        return f"conservation of {self.name}"


def rows_of(*sources: str) -> Conservation:
    """Begin the rule for these sources' rows: `rows_of("orders").filtered("refund", "amount < 0").into("paid")`.

    With several sources it holds for each row of each. Raises `InvalidPipeline`.
    """
    if not sources or len(set(sources)) < len(sources):
        raise InvalidPipeline("rows_of: name the sources whose rows travel, each once")
    return Conservation(sources)


def require_known(
    pipeline: str, declared: Sequence[Conservation], sources: Sequence[str], outputs: Sequence[str]
) -> None:
    """Raise `InvalidPipeline` for a rule that isn't complete, or names what the pipeline doesn't have."""
    names: set[str] = set()
    for rule in declared:
        if not rule.outputs:
            raise InvalidPipeline(f"pipeline {pipeline}: {rule} has no outputs: end it with .into(output)")
        partner = [rule.partner] if rule.partner is not None else []
        if unknown := sorted({*rule.sources, *partner} - {*sources}):
            raise InvalidPipeline(
                f"pipeline {pipeline}: {rule} names unknown sources {unknown}; the pipeline has {sorted(sources)}"
            )
        if unknown := sorted({*rule.outputs} - {*outputs}):
            raise InvalidPipeline(
                f"pipeline {pipeline}: {rule} names unknown outputs {unknown}; the pipeline has {sorted(outputs)}"
            )
        for named_rule in (rule, rule.mirrored):
            if named_rule is not None and named_rule.name in names:
                raise InvalidPipeline(f"pipeline {pipeline}: {named_rule} is declared twice")
            names.update([named_rule.name] if named_rule is not None else [])


def _columns(of: Conservation, columns: Columns) -> Mapping[str, str]:
    match columns:
        case str():
            expressions = {columns: quote_name(columns)}
        case Mapping():
            expressions = dict(columns)
        case _:
            expressions = {name: quote_name(name) for name in columns}
    if not expressions:
        raise InvalidPipeline(f"{of}: name at least one column that identifies its rows")
    return expressions
