"""Which columns of the sources each column of an output is made of, and which decide what rows it has.

The plan of a Spark Connect client's frame says so: what the client would send, before Spark has looked at it. It is
walked from the output down to the frames that the transform got. What isn't surely known is told as nothing: SQL in
text, functions over whole partitions, names that may mean two columns. A driver of its own has no such plan.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockstep.column_lineage import ColumnLineage, How, Part, Parts, bounded
from lockstep.compute._plan_columns import NOTHING, UNKNOWN, Column, Expressions, Table, become, keeps_rows, together
from lockstep.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


def column_lineage(inputs: Mapping[str, DataFrame], outputs: Mapping[str, DataFrame]) -> dict[str, ColumnLineage]:
    """Of each output of which all columns are known by name; `inputs`: the frames that they were made of, by source.
    Nothing is raised: no epoch fails for its lineage."""
    try:
        if not all(is_remote(frame.sparkSession) for frame in outputs.values()):
            return {}
        return bounded(_walked(inputs, outputs))
    except Exception:
        _log.debug("no lineage of columns is told", exc_info=True)
        return {}


def _walked(inputs: Mapping[str, DataFrame], outputs: Mapping[str, DataFrame]) -> dict[str, ColumnLineage]:
    from lockstep.compute._held_plan import relation_of

    plans = Plans({relation_of(frame).common.plan_id: _source(name, frame) for name, frame in inputs.items()})
    tables = {name: plans.table(relation_of(frame)) for name, frame in outputs.items()}
    made = {name: {one.name: one.made for one in table.columns} for name, table in tables.items()}
    return {
        name: ColumnLineage(made[name], table.rows)
        for name, table in tables.items()
        if not table.open and len(made[name]) == len(table.columns) and {*made[name].values()} != {None}
    }


def _source(name: str, frame: DataFrame) -> Table:
    columns = [Column(one, frozenset({Part(name, one, How.IDENTITY)})) for one in frame.schema.names]
    return Table(tuple(columns), NOTHING)


class Plans:
    """What is known of frames, by the ids of their plans; at first of `sources`."""

    def __init__(self, sources: Mapping[int, Table]) -> None:
        self._known = dict(sources)

    def table(self, relation: Any) -> Table:
        """Of the frame whose plan this is."""
        if not relation.common.HasField("plan_id"):
            return self._table(relation)
        number = relation.common.plan_id
        if number not in self._known:
            self._known[number] = self._table(relation)
        return self._known[number]

    def _table(self, relation: Any) -> Table:
        kind = relation.WhichOneof("rel_type")
        node: Any = getattr(relation, kind) if kind else None
        match kind:
            case "limit" | "offset" | "tail" | "sample" | "repartition" | "repartition_by_expression":
                return self.table(node.input)
            case "hint" | "collect_metrics" | "with_watermark":
                return self.table(node.input)
            case "with_relations":
                return self.table(node.root)
            case "range":
                return Table((Column("id", NOTHING),), NOTHING)
            case "subquery_alias":
                return self._alias(node)
            case "project":
                return self._project(node)
            case "with_columns":
                return self._with_columns(node)
            case "with_columns_renamed":
                return self._renamed(node)
            case "to_df":
                return self._to_df(node)
            case "drop":
                return self._drop(node)
            case "fill_na" | "replace":
                return self._replace_values(node)
            case "filter" | "drop_na" | "sort" | "deduplicate":
                return self._choose_rows(kind, node)
            case "join":
                return self._join(node)
            case "set_op":
                return self._union(node)
            case "aggregate":
                return self._aggregate(node)
        return UNKNOWN

    def _over(self, table: Table, aggregated: Table | None = None) -> Expressions:
        return Expressions(table, self._known, aggregated)

    def _alias(self, node: Any) -> Table:
        table = self.table(node.input)
        columns = tuple(replace(one, qualifier=node.alias) for one in table.columns)
        return replace(table, columns=columns, aliases=table.aliases | {node.alias.casefold()})

    def _project(self, node: Any) -> Table:
        table = self.table(node.input) if node.HasField("input") else Table(rows=NOTHING)
        found = [self._over(table).columns(one) for one in node.expressions]
        return _of(found, _with_rows_of(table, node.expressions))

    def _with_columns(self, node: Any) -> Table:
        table = self.table(node.input)
        columns = list(table.columns)
        for alias in node.aliases:
            [name] = alias.name
            made = self._over(table).made(alias.expr)
            columns = _put(columns, Column(name, made))
        return replace(_with_rows_of(table, [one.expr for one in node.aliases]), columns=tuple(columns))

    def _renamed(self, node: Any) -> Table:
        table = self.table(node.input)
        new = {one.col_name: one.new_col_name for one in node.renames} or dict(node.rename_columns_map)
        chained = {one.casefold() for one in new} & {one.casefold() for one in new.values()}
        columns = list(table.columns)
        for name, other in new.items():
            columns = [_renamed(one, name, other) for one in columns]
        unsure = [replace(one, made=None) for one in columns] if chained else columns
        return replace(table, columns=tuple(unsure))

    def _to_df(self, node: Any) -> Table:
        table, names = self.table(node.input), list(node.column_names)
        made = [one.made for one in table.columns]
        if table.open or len(made) != len(names):
            made = [None] * len(names)
        return Table(tuple(map(Column, names, made)), table.rows)

    def _drop(self, node: Any) -> Table:
        table = self.table(node.input)
        found = [self._over(table).find(one) for one in node.columns]
        keys = {one.column.key for one in found if one and not one.inside}
        unsure = len(keys) < len(found) or sum(one.key in keys for one in table.columns) > len(keys)
        if unsure or not all(map(table.is_sure_of, node.column_names)):
            return replace(UNKNOWN, aliases=table.aliases)
        left = [one for one in table.columns if one.key not in keys]
        left = [one for one in left if one.name not in node.column_names]
        return replace(table, columns=tuple(left))

    def _replace_values(self, node: Any) -> Table:
        table = self.table(node.input)
        known = all(len(table.named(name)) == 1 for name in node.cols)
        names = {table.named(name)[0] for name in node.cols} if known else set()

        def replaced(one: Column) -> Column:
            if names and one not in names:
                return one
            return Column(one.name, become(one.made, How.TRANSFORMATION), one.qualifier)

        return replace(table, columns=tuple(map(replaced, table.columns)))

    def _choose_rows(self, kind: str, node: Any) -> Table:
        table = self.table(node.input)
        match kind:
            case "filter":
                return table.made_of_rows(self._over(table).made(node.condition), How.FILTER)
            case "sort":
                order = [one.child for one in node.order]
                return table.made_of_rows(_all_named(self._over(table), order), How.SORT)
            case "drop_na":
                return table.made_of_rows(_made_of(table, node.cols or None), How.FILTER)
        names = None if node.all_columns_as_keys else node.column_names
        return table.made_of_rows(_made_of(table, names), How.GROUP_BY)

    def _join(self, node: Any) -> Table:
        left, right, using = self.table(node.left), self.table(node.right), list(node.using_columns)
        half = node.join_type in (node.JOIN_TYPE_LEFT_SEMI, node.JOIN_TYPE_LEFT_ANTI)
        both = Table(
            (*left.columns, *right.columns),
            together(left.rows, right.rows),
            left.open or right.open,
            left.hides or right.hides or bool(using),
            left.aliases | right.aliases,
        )
        if node.HasField("join_condition"):
            made = self._over(both).made(node.join_condition)
            found = both.made_of_rows(made, How.JOIN)
            return replace(found, columns=left.columns, open=left.open) if half else found
        keys = [(left.named(name), right.named(name)) for name in using]
        kept = [_key(node, *each, name) for each, name in zip(keys, using, strict=True)]
        found = both.made_of_rows(together(NOTHING, *(made for _, made in kept)), How.JOIN)
        gone = {one for each in keys for side in each for one in side}
        rest = [one for one in (left.columns if half else both.columns) if one not in gone]
        columns = (*(column for column, _ in kept), *rest)
        return replace(found, columns=columns, open=left.open if half else both.open)

    def _union(self, node: Any) -> Table:
        left, right = self.table(node.left_input), self.table(node.right_input)
        is_union = node.set_op_type == node.SET_OP_TYPE_UNION and node.is_all
        if not is_union or left.open or right.open:
            return UNKNOWN
        rows, aliases = together(left.rows, right.rows), left.aliases | right.aliases
        if not node.by_name:
            if len(left.columns) != len(right.columns):
                return UNKNOWN
            pairs = zip(left.columns, right.columns, strict=True)
            columns = tuple(Column(one.name, together(one.made, other.made)) for one, other in pairs)
            return Table(columns, rows, aliases=aliases)
        names = list(dict.fromkeys(one.name for one in (*left.columns, *right.columns)))
        if len({name.casefold() for name in names}) < len(names):
            return UNKNOWN
        found = [(name, [one.made for one in (*left.columns, *right.columns) if one.name == name]) for name in names]
        return Table(tuple(Column(name, together(*made)) for name, made in found), rows, aliases=aliases)

    def _aggregate(self, node: Any) -> Table:
        table = self.table(node.input)
        if node.group_type != node.GROUP_TYPE_GROUPBY:
            return UNKNOWN
        over = self._over(table)
        groups = [over.columns(one) for one in node.grouping_expressions]
        plain = [over.find(one) for one in node.grouping_expressions]
        keys = {one.column.key for one in plain if one and not one.inside}
        others = How.AGGREGATION if len(keys) == len(plain) else None
        outside = [one if one.key in keys else _of_many_rows(one, others) for one in table.columns]
        over_groups = self._over(replace(table, columns=tuple(outside)), table)
        found = [*groups, *(over_groups.columns(one) for one in node.aggregate_expressions)]
        grouped = table.made_of_rows(_all_named(over, node.grouping_expressions), How.GROUP_BY)
        return _of(found, replace(grouped, hides=False))


def _of(found: Sequence[Sequence[Column] | None], below: Table) -> Table:
    """What is selected from `below`; None: it isn't known what."""
    columns = [one for each in found if each is not None for one in each]
    return replace(below, columns=tuple(columns), open=any(each is None for each in found))


def _with_rows_of(table: Table, expressions: Iterable[Any]) -> Table:
    return table if keeps_rows(expressions) else replace(table, rows=None)


def _all_named(over: Expressions, expressions: Sequence[Any]) -> Parts | None:
    """Of all of these together; a literal may be the number of a column."""
    literal = any(one.WhichOneof("expr_type") == "literal" for one in expressions)
    return None if literal else over.all_made(expressions)


def _put(columns: Sequence[Column], new: Column) -> list[Column]:
    """With `new` in the place of what is called so. Of a name in other letters nobody knows if it is the same."""
    before = [one for one in columns if one.is_called(new.name)]
    sure = all(one.name == new.name for one in before)
    put = new if sure else replace(new, made=None)
    return [put if one in before else one for one in columns] if before else [*columns, put]


def _renamed(column: Column, name: str, other: str) -> Column:
    if not column.is_called(name):
        return column
    return Column(other, column.made if column.name == name else None, column.qualifier)


def _of_many_rows(column: Column, how: How | None) -> Column:
    """As an aggregation sees it outside of the functions that are known to aggregate; `how` None: who knows."""
    return replace(column, made=become(column.made, how) if how else None)


def _made_of(table: Table, names: Iterable[str] | None) -> Parts | None:
    """Of the columns of these names; None: of all."""
    if names is None:
        return None if table.open else together(NOTHING, *(one.made for one in table.columns))
    named = [table.named(name) for name in names]
    return together(NOTHING, *(one[0].made if len(one) == 1 else None for one in named))


def _key(node: Any, left: Sequence[Column], right: Sequence[Column], name: str) -> tuple[Column, Parts | None]:
    """The one column that a join has of both sides' columns of a name, and what decides which rows are joined."""
    sides = [each[0] if len(each) == 1 else Column(name, None) for each in (left, right)]
    both = together(*(one.made for one in sides))
    if node.join_type == node.JOIN_TYPE_FULL_OUTER:
        return Column(sides[0].name, become(both, How.TRANSFORMATION)), both
    return sides[node.join_type == node.JOIN_TYPE_RIGHT_OUTER], both
