"""Audits of one's own, as users write them: at the top of a module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def dear(orders: pa.Table) -> pa.Table:
    return orders.filter(pc.greater(orders["weight"], 0.3))


def dear_by_mask(orders: pa.Table) -> pa.ChunkedArray:
    return pc.greater(orders["weight"], 0.3)


def dear_by_array(orders: pa.Table) -> pa.Array:
    return pc.greater(orders["weight"], 0.3).combine_chunks()


def keys_that_come_twice(orders: pa.Table) -> pa.Table:
    """Some columns, in another order."""
    counted = orders.group_by("id").aggregate([([], "count_all")])
    return counted.filter(pc.greater(counted["count_all"], 1)).select(["id"])


def all_of_them(orders: pa.Table) -> pa.Table:
    return orders


def none_of_them(orders: pa.Table) -> pa.Table:
    return orders.slice(0, 0)


def mentions(orders: pa.Table) -> Any:
    raise ValueError(orders["customer"][1].as_py())


def adds_up(orders: pa.Table) -> Any:
    raise TypeError(f"Could not convert string {orders['customer'][1].as_py()!r} to numeric")  # as pandas does


def misspells(orders: pa.Table) -> Any:
    return orders.where("weight > 1")


def leaves(orders: pa.Table) -> Any:
    sys.exit(0)


def gives_nothing(orders: pa.Table) -> None:
    return None


def gives_a_list(orders: pa.Table) -> Any:
    return orders.to_pylist()


def gives_numbers(orders: pa.Table) -> Any:
    return orders["id"]


def gives_a_short_mask(orders: pa.Table) -> Any:
    return pa.array([True])


def gives_one_boolean(orders: pa.Table) -> Any:
    return pc.any(pc.is_null(orders["id"]))


def gives_another_column(orders: pa.Table) -> Any:
    return orders.append_column("why", pa.array(["dear"] * len(orders)))


def gives_another_type(orders: pa.Table) -> Any:
    return orders.select(["id"]).cast(pa.schema([("id", pa.string())]))


def gives_more_rows(orders: pa.Table) -> Any:
    return pa.concat_tables([orders, orders])


def gives_no_column(orders: pa.Table) -> Any:
    return orders.select([])


async def gives_a_promise(orders: pa.Table) -> Any:
    return orders


def more_than_zero(orders: pa.Table) -> pa.ChunkedArray:
    return pc.greater(orders["id"], 0)


def more_than(least: int) -> Callable[[pa.Table], Any]:
    def check(orders: pa.Table) -> Any:
        return pc.greater(orders["id"], least)

    return check


class Checks:
    def method(self, orders: pa.Table) -> pa.Table:
        return orders


by_lambda = lambda orders: orders  # noqa: E731
closure = more_than(1)
some = partial(dear)
checks = Checks()


# --- over a DataFrame ---


def many(frame: Any) -> Any:
    return frame.where("id > 1").select("customer", "ID")


def by_a_function_of_python(frame: Any) -> Any:
    from pyspark.sql.functions import udf

    return frame.where(udf(_is_two, "boolean")("id"))


def _is_two(number: int | None) -> bool:
    return number == 2


def asks_for_more(frame: Any) -> Any:
    return frame.where("nope > 1")


def asks_python_for_more(frame: Any) -> Any:
    return frame.nope


def casts(frame: Any) -> Any:
    return frame.where("CAST(customer AS INT) > 0")


def doubles(frame: Any) -> Any:
    return frame.unionAll(frame)


def adds_a_column(frame: Any) -> Any:
    return frame.selectExpr("id", "1 AS why")


def counts(frame: Any) -> Any:
    return frame.count()


def twos(frame: Any) -> Any:
    return frame.where("id = 2")
