"""What becomes of what a decoder gives, row by row, without Spark."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import math
import re
import socket
import ssl
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.errors import InvalidPipeline
from lockstep.spark.decoding import _decode, load_function

pd = pytest.importorskip("pandas")
TIME = pa.timestamp("us", "UTC")
NESTED = {"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int8()), "r": pa.struct([("x", pa.date32())])}
PLAIN = {"n": pa.int32(), "d": pa.decimal128(4, 2), "t": TIME, "s": pa.string(), "f": pa.float32(), "g": pa.float64()}
ROW = pa.struct({**PLAIN, "b": pa.binary(), "o": pa.bool_(), "z": pa.timestamp("us"), **NESTED}.items())
TYPE = pa.struct([("found", ROW), ("why", pa.string())])
NO_MAPPING = "f returned a list, not a mapping"
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


def decoded(*given: Any) -> list[tuple[Any, Any]]:
    """What `_decode` makes of a function that gives these, one after the other."""
    rows = iter(given)
    found = _decode([b"x"] * len(given), "decode", lambda data: next(rows), TYPE)
    assert found.type == TYPE
    return [(one["found"], one["why"]) for one in found.to_pylist()]


def row(**columns: Any) -> dict[str, Any]:
    return dict.fromkeys(field.name for field in ROW) | columns


def test_what_fits_its_columns_is_kept() -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"n": 5, "more": object()}, {"n": 5}),
        ({"f": math.inf, "g": 5, "b": b"x", "o": True}, {"f": math.inf, "g": 5.0, "b": b"x", "o": True}),
        ({"m": {"k": 1}, "r": {"x": NOON.date(), "y": 1}}, {"m": [("k", 1)], "r": {"x": NOON.date()}}),
        ({"l": (), "m": {"k": None}, "r": {}}, {"l": [], "m": [("k", None)], "r": {"x": None}}),
        ({"d": Decimal("1.5"), "l": [1, None]}, {"d": Decimal("1.50"), "l": [1, None]}),
        ({"t": NOON.astimezone(timezone(timedelta(hours=5)))}, {"t": NOON}),
        ({"t": NOON.replace(tzinfo=None)}, {"t": NOON}),
        ({"t": pd.Timestamp(NOON), "z": pd.Timestamp(1000)}, {"t": NOON, "z": datetime(1970, 1, 1, 0, 0, 0, 1)}),
    ]
    assert decoded(*(given for given, _ in cases)) == [(row(**expected), None) for _, expected in cases]


MISFITS: Mapping[str, list[Any]] = {
    "n": ["5", 2**31, 1.5, True],
    "d": [Decimal("1.505"), Decimal(100), 1.5, Decimal("NaN")],
    "t": ["2013-01-01", 1, pd.Timestamp(1, tz="UTC"), pd.NaT],
    "z": [NOON, pd.Timestamp(1), pd.Timestamp(NOON)],
    "f": [1e300, 10**400, 1e-50],
    "g": [True, 2**53 + 1],
    "b": ["x"],
    "o": [1],
    "m": [{"k": 300}, {"k": 0.5}, {1: 1}],
    "r": [{"x": NOON}, []],
    "l": [[0.5], "12", [1, "x"], 5],
    "s": [5, b"\xff", "\ud800"],
}


@pytest.mark.fault("J20", "X8")
def test_what_would_change_in_its_column_is_malformed_and_its_neighbours_are_not() -> None:
    for column, value in [(column, value) for column, values in MISFITS.items() for value in values]:
        before, found, after = decoded({"n": 1}, {"s": "whole", column: value}, {"n": 2})
        assert (before, after) == ((row(n=1), None), (row(n=2), None)), (column, value)
        assert found[0] is None, (column, value)
        assert f"for column {column}, which isn't" in found[1], (column, value)


@pytest.mark.fault("X8", "V11")
def test_a_column_that_is_not_null_needs_a_value() -> None:
    part = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    declared = pa.struct([pa.field("n", pa.int32(), nullable=False), ("r", part), ("l", pa.list_(part))])
    kind = pa.struct(
        [("n", pa.int32()), ("r", pa.struct({"x": pa.int32()})), ("l", pa.list_(pa.struct({"x": pa.int32()})))]
    )
    wrong: dict[str, list[dict[str, Any]]] = {
        "n": [{"n": None}, {}],
        "r": [{"n": 1, "r": {"x": None}}, {"n": 1, "r": {}}],
        "l": [{"n": 1, "l": [{"x": 1}, {}]}],
    }
    given = [{"n": 1}, {"n": 1, "r": {"x": 1}, "l": [None]}, *(row for rows in wrong.values() for row in rows)]
    rows, type = iter(given), pa.struct([("found", kind), ("why", pa.string())])
    found = _decode([b"x"] * len(given), "decode", lambda data: next(rows), type, declared).to_pylist()
    whys = [re.search("column (.), which isn't", one["why"] or "") for one in found]
    assert [why and why[1] for why in whys] == [None, None, "n", "n", "r", "r", "l"]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["good", "none", "null", "raises", "misfit", "list"])))
def test_each_record_is_judged_alone(kinds: list[str]) -> None:
    given: dict[str, Any] = {"good": {"n": 1}, "none": None, "misfit": {"n": "x"}, "list": []}

    def function(data: bytes) -> Any:
        if data == b"raises":
            raise KeyError("what stands in the record")
        return given[data.decode()]

    found = _decode([None if kind == "null" else kind.encode() for kind in kinds], "f", function, TYPE).to_pylist()
    judged = {"good": (row(n=1), False), **dict.fromkeys(("none", "null"), (None, False))}
    assert [(one["found"], one["why"] is not None) for one in found] == [judged.get(k, (None, True)) for k in kinds]
    assert not any("stands in the record" in str(one["why"]) for one in found)
    assert {one["why"] for one, kind in zip(found, kinds, strict=True) if kind == "list"} <= {NO_MAPPING}


class ClientError(Exception):
    """As a client's own, which knows nothing of Python's."""


class FileError(OSError):
    """As somebody's own, of whom nobody knows what it says."""


SYSTEM = [
    ConnectionError(),
    TimeoutError(),
    MemoryError(),
    ImportError(),
    FileNotFoundError(errno.ENOENT, "no such file"),
    OSError(errno.EIO, "input or output"),
    FileError("whatever it is"),
    socket.gaierror(socket.EAI_AGAIN, "try again"),
]


def test_errors_of_the_system_are_nobodys_bad_record() -> None:
    for error in SYSTEM:
        with pytest.raises(type(error)) as raised:
            _decode([b"x"], "f", lambda data: _raise(error), TYPE)  # noqa: B023
        assert raised.value is error


def _raise(error: Exception) -> NoReturn:
    raise error


def _from(error: Exception) -> NoReturn:
    raise ClientError("what stands in the record") from error


def _while_handling(error: Exception) -> NoReturn:
    try:
        raise error
    except Exception:
        raise ClientError("what stands in the record")  # noqa: B904


def _from_none(error: Exception) -> NoReturn:
    try:
        raise error
    except Exception:
        raise ClientError("what stands in the record") from None


def _in_a_group(error: Exception) -> NoReturn:
    raise ClientError("what stands in the record") from ExceptionGroup("all addresses", [KeyError(), error])


BROKEN = [
    ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    TimeoutError("timed out"),
    socket.gaierror(socket.EAI_AGAIN, "try again"),
    ssl.SSLError("the handshake"),
    OSError(errno.ENETUNREACH, "unreachable"),
]


@pytest.mark.fault("J20")
def test_a_broken_connection_is_nobodys_bad_record_whatever_a_client_makes_of_it() -> None:
    for wrapped, error in product((_from, _while_handling, _from_none, _in_a_group), BROKEN):
        with pytest.raises(ClientError):
            _decode([b"x"], "f", lambda data: wrapped(error), TYPE)  # noqa: B023


def test_what_a_function_tells_of_the_record_is_believed() -> None:
    for error in KeyError(), FileNotFoundError(errno.ENOENT, "no such schema"), OSError():
        found = _decode([b"x", b"x"], "f", lambda data: _from(error), TYPE).to_pylist()  # noqa: B023
        found += _decode([b"x"], "f", lambda data: _while_handling(error), TYPE).to_pylist()  # noqa: B023
        assert found == [{"found": None, "why": "f raised ClientError"}] * 3, error
    one, other = ClientError(), ClientError()
    one.__cause__, other.__cause__ = other, one  # which has no end
    [circular] = _decode([b"x"], "f", lambda data: _raise(one), TYPE).to_pylist()
    assert circular["why"] == "f raised ClientError"


@pytest.mark.fault("J20")
def test_what_cant_be_decompressed_is_malformed() -> None:
    """Python's decompressors raise an OSError, among others, for what isn't theirs."""
    for compression in (gzip, bz2, lzma, zlib):
        whole = compression.compress(b"1" * 999)

        def function(data: bytes, compression: Any = compression) -> Any:
            return {"n": len(compression.decompress(data))}

        given = [whole, b"neither", whole[:-9], whole[:9] + b"xxx" + whole[12:], whole + b"more"]
        found = _decode(given, "f", function, TYPE).to_pylist()
        assert found[0] == {"found": row(n=999), "why": None}, compression
        assert [one["found"] for one in found[1:4]] == [None] * 3, compression


def test_a_function_that_isnt_there_is_refused(subtests: pytest.Subtests) -> None:
    for reference in "no.such.module:f", "json:no_such_function", "json:__name__":
        with subtests.test(reference), pytest.raises(InvalidPipeline, match="value: "):
            load_function("value", reference)
