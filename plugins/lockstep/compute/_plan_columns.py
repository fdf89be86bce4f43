"""The columns of a frame, as far as its plan tells them, and the expressions over them: what each is made of.

Names are looked up as Spark's analyzer does. Wherever it could find another column than is found here, nothing is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lockstep.column_lineage import How, Part, Parts


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOTHING: Parts = frozenset()  #: what a literal is made of
_NAME = re.compile(r"`((?:[^`]|``)*)`(?:\.|$)|([^.`]+)(?:\.|$)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: in SQL text these may be values
_WORDS = _words(
    "true false null default user session_user current_user current_date current_time current_timestamp localtime "
    "localtimestamp current_catalog current_database current_schema"
)
_AGGREGATES = _words(
    "any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or "
    "collect_list collect_set corr count count_if covar_pop covar_samp every first first_value kurtosis last "
    "last_value listagg max max_by mean median min min_by mode percentile percentile_approx product regr_avgx "
    "regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev "
    "stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance"
)
#: of one row they make several, or none
_MULTIPLIERS = _words(
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer session_window stack "
    "variant_explode variant_explode_outer window"
)
_ROW_FUNCTIONS = (100, 101, 200, 204, 250, 251)  #: Python functions that give each row a value: pyspark's eval types
_AGGREGATE_FUNCTIONS = (202, 203, 217, 252, 253, 254)  #: and those that give many rows one


@dataclass(frozen=True, eq=False)
class Column:
    """`made` None: nobody knows of what. `qualifier`: of a frame that has an alias. Whatever hands a column on as it is
    keeps its `key`, by which a frame's own columns are found again in what is made of the frame."""

    name: str
    made: Parts | None
    qualifier: str | None = None
    key: object = field(default_factory=object)

    def is_called(self, name: str) -> bool:
        """In the one way or the other of reading names."""
        return self.name.casefold() == name.casefold()


@dataclass(frozen=True, eq=False)
class Table:
    """What is known of a frame. `rows`: of what it depends which rows it has, and their order; None if not known.

    `open`: it may have further columns, or others that a name means. `hides`: some can be reached that aren't shown.
    """

    columns: tuple[Column, ...] = ()
    rows: Parts | None = None
    open: bool = False
    hides: bool = False
    aliases: frozenset[str] = frozenset()

    def named(self, name: str) -> list[Column]:
        """Those that `name` may mean."""
        exact = [one for one in self.columns if one.name == name]
        close = [one for one in self.columns if one.is_called(name)]
        return exact if self.open or len(close) > 1 else close

    def is_sure_of(self, name: str) -> bool:
        """Whether `name` means the same columns in the one way or the other of reading names."""
        return all(one.name == name for one in self.columns if one.is_called(name))

    def made_of_rows(self, parts: Parts | None, how: How) -> Table:
        """With these having a part in which rows there are."""
        return replace(self, rows=together(self.rows, become(parts, how)))


UNKNOWN = Table(open=True)


def become(parts: Parts | None, how: How) -> Parts | None:
    """The parts of what is made of something that has `parts`."""
    if parts is None:
        return None
    if not how.is_direct:
        return frozenset(replace(one, how=how) for one in parts)
    stays = {How.AGGREGATION} if how is How.TRANSFORMATION else set()
    return frozenset(replace(one, how=how) if one.how.is_direct and one.how not in stays else one for one in parts)


def together(*parts: Parts | None) -> Parts | None:
    """None if any isn't known."""
    known = [one for one in parts if one is not None]
    return frozenset[Part]().union(*known) if len(known) == len(parts) else None


def parts_of_name(name: str) -> list[str]:
    """Of a name as Spark's API takes it: dots part it, backticks keep it together. Empty if it is none."""
    found, end = [], 0
    while end < len(name) and (match := _NAME.match(name, end)):
        quoted, plain = match.groups()
        found.append(plain if quoted is None else quoted.replace("``", "`"))
        end = match.end()
    return found if end == len(name) and not name.endswith(".") else []


@dataclass(frozen=True)
class Found:
    """What a name means. `called`: what Spark calls it where it is selected; `inside`: it is a part of the column."""

    column: Column
    called: str
    inside: bool = False

    @property
    def made(self) -> Parts | None:
        return become(self.column.made, How.TRANSFORMATION) if self.inside else self.column.made


@dataclass(frozen=True)
class Expressions:
    """What expressions over `table` are made of. `frames`: what is known of each frame, by its plan's id.
    `aggregated`: what aggregate functions see, if that is another table."""

    table: Table
    frames: Mapping[int, Table]
    aggregated: Table | None = None

    def all_made(self, expressions: Iterable[Any]) -> Parts | None:
        """Of all of these together."""
        return together(NOTHING, *map(self.made, expressions))

    def made(self, expression: Any) -> Parts | None:
        """None if that can't be said."""
        kind = expression.WhichOneof("expr_type")
        value: Any = getattr(expression, kind) if kind else None
        match kind:
            case "literal" | "unresolved_named_lambda_variable":
                return NOTHING
            case "unresolved_attribute" | "expression_string":
                return found.made if (found := self.find(expression)) else None
            case "alias":
                return self.made(value.expr)
            case "sort_order":
                return self.made(value.child)
            case "named_argument_expression":
                return self.made(value.value)
            case "lambda_function":
                return self.made(value.function)
            case "cast":
                return become(self.made(value.expr), How.TRANSFORMATION)
            case "unresolved_extract_value":
                return become(self.all_made([value.child, value.extraction]), How.TRANSFORMATION)
            case "update_fields":
                new = [value.value_expression] if value.HasField("value_expression") else []
                return become(self.all_made([value.struct_expression, *new]), How.TRANSFORMATION)
            case "unresolved_function":
                return self._function(value)
            case "common_inline_user_defined_function":
                return self._user_function(value)
            case "window":
                order = [one.child for one in value.order_spec]
                seen = become(self.all_made([*value.partition_spec, *order]), How.WINDOW)
                return together(self.made(value.window_function), seen)
        return None

    def _function(self, value: Any) -> Parts | None:
        name, arguments = value.function_name.casefold(), list(value.arguments)
        if value.is_user_defined_function or "." in name:
            return None
        counts_rows = name == "count" and [one.WhichOneof("expr_type") for one in arguments] == ["unresolved_star"]
        if counts_rows and not value.is_distinct:
            return NOTHING
        if name == "when":
            conditions, values = arguments[:-1:2], [*arguments[1::2], *arguments[len(arguments) - len(arguments) % 2 :]]
            decided = become(self.all_made(conditions), How.CONDITIONAL)
            return together(become(self.all_made(values), How.TRANSFORMATION), decided)
        if name in _AGGREGATES:
            return self._aggregate(arguments)
        return become(self.all_made(arguments), How.TRANSFORMATION)

    def _user_function(self, value: Any) -> Parts | None:
        kind = value.python_udf.eval_type if value.WhichOneof("function") == "python_udf" else None
        if kind in _AGGREGATE_FUNCTIONS:
            return self._aggregate(value.arguments)
        return become(self.all_made(value.arguments), How.TRANSFORMATION) if kind in _ROW_FUNCTIONS else None

    def _aggregate(self, arguments: Iterable[Any]) -> Parts | None:
        inside = replace(self, table=self.aggregated, aggregated=None) if self.aggregated else self
        return become(inside.all_made(arguments), How.AGGREGATION)

    def find(self, expression: Any) -> Found | None:
        """The one column that the expression is, or is in, and that surely; None if it is something else."""
        kind = expression.WhichOneof("expr_type")
        if kind == "expression_string":
            text = expression.expression_string.expression
            plain = _PLAIN.fullmatch(text) and text.casefold() not in _WORDS
            return self._find([text]) if plain else None
        if kind != "unresolved_attribute" or expression.unresolved_attribute.is_metadata_column:
            return None
        value = expression.unresolved_attribute
        names = parts_of_name(value.unparsed_identifier)
        if not value.HasField("plan_id"):
            return self._find(names)
        frame = self.frames.get(value.plan_id)
        there = replace(self, table=frame)._find(names) if frame else None
        here = [one for one in self.table.columns if there and one.key is there.column.key]
        return replace(there, column=here[0]) if there and here else None

    def _find(self, names: Sequence[str]) -> Found | None:
        if not names:
            return None
        first, *further = names
        if not further:
            return self._only(self.table.named(first), first, inside=False)
        qualified = [one for one in self.table.columns if _same(one.qualifier, first)]
        if named := replace(self.table, columns=tuple(qualified)).named(further[0]):
            return self._only(named, names[-1], inside=len(further) > 1)
        if first.casefold() in self.table.aliases:
            return None
        return self._only(self.table.named(first), names[-1], inside=True)

    def _only(self, found: Sequence[Column], called: str, inside: bool) -> Found | None:
        alike = found and len({one.made for one in found}) == 1
        return Found(found[0], called, inside) if alike else None

    def columns(self, expression: Any) -> list[Column] | None:
        """Those that a projection has of it; None if their names aren't known."""
        kind = expression.WhichOneof("expr_type")
        match kind:
            case "alias":
                made = self.made(expression)
                return [Column(name, made) for name in expression.alias.name]
            case "unresolved_star":
                return self._star(expression.unresolved_star)
            case "expression_string" if expression.expression_string.expression == "*":
                return None if self.table.open else list(self.table.columns)
        found = self.find(expression)
        if found and found.inside:
            return [Column(found.called, found.made)]
        if found:
            return [replace(found.column, name=found.called)]
        name = self._name(expression)
        return None if name is None else [Column(name, self.made(expression))]

    def _star(self, star: Any) -> list[Column] | None:
        if self.table.open or (self.table.hides and (star.unparsed_target or star.HasField("plan_id"))):
            return None
        if star.HasField("plan_id"):
            frame = self.frames.get(star.plan_id, UNKNOWN)
            keys = {one.key for one in frame.columns}
            found = [one for one in self.table.columns if one.key in keys]
            return found if not frame.open and len(found) == len(frame.columns) else None
        if not star.unparsed_target:
            return list(self.table.columns)
        names = parts_of_name(star.unparsed_target.removesuffix(".*"))
        return [one for one in self.table.columns if len(names) == 1 and _same(one.qualifier, names[0])] or None

    def _name(self, expression: Any) -> str | None:
        """What Spark calls it without an alias, as far as that is simple."""
        kind = expression.WhichOneof("expr_type")
        if kind == "unresolved_attribute":  # its column isn't known, and is called so nevertheless
            names = parts_of_name(expression.unresolved_attribute.unparsed_identifier)
            return names[-1] if names else None
        if kind == "cast" and (found := self.find(expression.cast.expr)):
            return found.called
        if kind == "unresolved_function":
            value, seen = expression.unresolved_function, replace(self, table=self.aggregated or self.table)
            only = seen.find(value.arguments[0]) if len(value.arguments) == 1 and not value.is_distinct else None
            plain = only and not only.inside and value.function_name in _AGGREGATES
            return f"{value.function_name}({only.called})" if plain and only else None
        return None


def keeps_rows(expressions: Iterable[Any]) -> bool:
    """Whether each row stays one row where these are selected."""
    return not any(_calls(one, _MULTIPLIERS) for one in expressions)


def _calls(message: Any, names: frozenset[str]) -> bool:
    if getattr(message, "function_name", "").casefold() in names:
        return True
    for _, value in message.ListFields():
        several = value if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
        if any(_calls(one, names) for one in several if hasattr(one, "ListFields")):
            return True
    return False


def _same(one: str | None, other: str) -> bool:
    return one is not None and one.casefold() == other.casefold()
