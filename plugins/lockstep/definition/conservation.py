"""How rows travel through a transform, as a pipeline declares it.

The seal proves it from what the epoch's own job counts: each row of a source stands in its outputs as often as was
said, or was dropped for a reason that was said. Nothing is read a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline

Join: TypeAlias = Literal["one_to_one", "many_to_one", "left"]
#: Names of columns that are called alike in source and output, or of the output's by the source's SQL expressions
Columns: TypeAlias = str | Sequence[str] | Mapping[str, str]
UNACCOUNTED = "unaccounted"  #: rows that a balance lacks, or has too many, where an audit is to tell of them
QUARANTINED = "quarantined"  #: rows of an output that audits sent to quarantine
_COUNTED = ("in", "unmatched", UNACCOUNTED, QUARANTINED)  #: what a balance counts beside reasons and outputs


@dataclass(frozen=True)
class Conservation:
    """What becomes of the rows of `sources`; made by `rows_of`. Each method gives a new one.

    Conditions and expressions are Spark SQL over the source's columns, those of `unmatched` over the outputs'. Records
    that a source puts into quarantine don't go in. Raises `InvalidPipeline`.
    """

    sources: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)  #: by reason the condition; a row goes by its first one
    array: str | None = None  #: of whose elements each one becomes a row
    outer: bool = False  #: a row without elements becomes one as well
    #: by which a row is known again: columns of the outputs, each with the expression that it is of a source
    key: Mapping[str, str] = field(default_factory=dict)
    count: str | None = None  #: the outputs' column that says how many rows one stands for
    join: Join | None = None
    partner: str | None = None  #: the source that is joined one to one
    unmatched: str | None = None  #: of an output's row without a partner

    def __post_init__(self) -> None:
        if self.join == "one_to_one" and (self.dropped or self.array is not None):
            raise InvalidPipeline(f"{self}: one_to_one means every row of both sides: none filtered, none exploded")

    def filtered(self, reason: str, condition: str) -> Conservation:
        """Rows for which `condition` is true (not null) are dropped, for `reason`."""
        if not reason or reason in self.dropped or reason in _COUNTED:
            raise InvalidPipeline(f"{self}: a reason to drop rows needs a name of its own, not {reason!r}")
        return replace(self, dropped={**self.dropped, reason: condition})

    def exploded(self, array: str, *, outer: bool = False) -> Conservation:
        """Each element of `array` (an array or a map) becomes a row; `outer`: a row without elements becomes one, too.

        What is counted are elements then, also of rows that are filtered.
        """
        if self.array is not None:
            raise InvalidPipeline(f"{self}: say exploded once")
        return replace(self, array=array, outer=outer)

    def joined(
        self, join: Join, *, key: Columns, partner: str | None = None, unmatched: str | None = None
    ) -> Conservation:
        """Each row is joined and stays one row.

        "many_to_one": it has exactly one partner; "one_to_one": and each row of source `partner` is joined, too;
        "left": it has one at most. `key`: by which a row is known again in the outputs (of one_to_one in both sources):
        a lost row and a doubled one make the right number together. `unmatched`: true of an output's row without a
        partner; of a left join these are counted, of any other there may be none.
        """
        if join not in get_args(Join):
            raise InvalidPipeline(f"{self}: a join is one of {', '.join(get_args(Join))}, not {join!r}")
        if self.key:
            raise InvalidPipeline(f"{self}: say joined or aggregated, and once")
        if (join == "one_to_one") != (partner is not None):
            raise InvalidPipeline(f"{self}: partner= names the other source of a one_to_one join, and of no other one")
        if join == "left" and unmatched is None:
            raise InvalidPipeline(f"{self}: of a left join say unmatched=, what is true of a row without a partner")
        return replace(self, join=join, partner=partner, key=_columns(self, key), unmatched=unmatched)

    def aggregated(self, by: Columns, *, count: str) -> Conservation:
        """Rows are grouped `by` these columns of the outputs; their column `count` says how many rows each stands for.

        Proven is that every row is counted, once and in its own group; not what else is computed of them.
        """
        if self.key:
            raise InvalidPipeline(f"{self}: say joined or aggregated, and once")
        return replace(self, key=_columns(self, by), count=count)

    def into(self, *outputs: str) -> Conservation:
        """Each row that isn't dropped stands in one of `outputs`, once."""
        if not outputs or len(set(outputs)) < len(outputs) or self.outputs:
            raise InvalidPipeline(f"{self}: say once which outputs the rows stand in, each by its name")
        if both := sorted({*outputs} & {*self.dropped, *_COUNTED}):
            raise InvalidPipeline(f"{self}: {both} is what something else is counted as: give the reason another name")
        return replace(self, outputs=outputs)

    @property
    def name(self) -> str:
        """Of its balance."""
        return f"{', '.join(self.sources)} into {', '.join(self.outputs) or '…'}"

    @property
    def mirrored(self) -> Conservation | None:
        """Of a one_to_one join: what it says of the partner's rows."""
        if self.join != "one_to_one" or self.partner is None:
            return None
        return Conservation((self.partner,), self.outputs, key=self.key)

    def __str__(self) -> str:
        return f"conservation of {self.name}"


def rows_of(*sources: str) -> Conservation:
    """What becomes of these sources' rows: `rows_of("orders").filtered("refund", "amount < 0").into("paid")`.

    Of several sources each row of each one. Raises `InvalidPipeline`.
    """
    if not sources or len(set(sources)) < len(sources):
        raise InvalidPipeline("rows_of: name the sources whose rows travel, each once")
    return Conservation(sources)


def require_known(
    pipeline: str, declared: Sequence[Conservation], sources: Sequence[str], outputs: Sequence[str]
) -> None:
    """Raise `InvalidPipeline` for one that isn't complete, or speaks of what the pipeline doesn't have."""
    names: set[str] = set()
    for rule in declared:
        if not rule.outputs:
            raise InvalidPipeline(f"pipeline {pipeline}: {rule} doesn't say where they go: end it with .into(output)")
        partner = [rule.partner] if rule.partner is not None else []
        if unknown := sorted({*rule.sources, *partner} - {*sources}):
            raise InvalidPipeline(f"pipeline {pipeline}: {rule} speaks of sources {unknown}, it has {sorted(sources)}")
        if unknown := sorted({*rule.outputs} - {*outputs}):
            raise InvalidPipeline(f"pipeline {pipeline}: {rule} speaks of outputs {unknown}, it has {sorted(outputs)}")
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
        raise InvalidPipeline(f"{of}: name at least one column by which its rows are told apart")
    return expressions
