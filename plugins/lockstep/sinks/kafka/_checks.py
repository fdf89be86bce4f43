"""What is checked of an epoch's records before the decision: what brokers refuse later blocks the pipeline.

A record's time is measured by the brokers' clock at the moment at which it comes. One that is too far in the future
gets nearer while the epoch waits; one from the past gets older, so that it has to be good for a whole transaction more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.connections.kafka.limits import TopicLimits, is_compacted
from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.sinks.kafka._records import HEADER, HEADER_BYTES, REPLACES, RecordColumns, Records

_log = logging.getLogger(__name__)

RESERVED = (HEADER, REPLACES)  #: what headers are called that say whose record it is
_ANY = 2**63 - 1
#: A record that brokers will refuse within this time is worth a line in the log.
_SOON = timedelta(days=1)
_SAMPLE = 20_000  #: records, of which it is measured what handing them over takes
#: Sending takes this many times as long as making the records, or more: the rest is the network's and the brokers'.
_USUALLY = 4


def require_fitting_topic(settings: Mapping[str, str], topic: str, columns: RecordColumns, who: str) -> None:
    """Raises `PreflightRefused` for a topic that refuses every record, or drops a column of each without a word."""
    if columns.key is None and is_compacted(settings):
        raise PreflightRefused(f"{who}: topic {topic} is compacted, so each record needs a key: give key=…")
    if columns.timestamp is not None and settings.get("message.timestamp.type") == "LogAppendTime":
        raise PreflightRefused(
            f"{who}: topic {topic} has message.timestamp.type=LogAppendTime: brokers would put their own time in place "
            f"of column {columns.timestamp}. Leave timestamp={columns.timestamp!r} away and send the column in the "
            "value, or set the topic to CreateTime"
        )


class RecordChecks:
    """Compares an epoch's records with what their topics take, and measures what making them takes.

    CPU time of this thread alone, which no load on the machine makes longer, and no publisher can do without.
    """

    def __init__(
        self, limits: Mapping[str, TopicLimits], who: str, now: datetime, timeout: float, further: int = 0
    ) -> None:
        """`limits`: by topic. `timeout`: seconds that one try at sending may take; `further`: bytes that each record
        has besides."""
        self._named = len(HEADER) + further
        self._limits, self._who, self._now, self._timeout = limits, who, now, timeout
        self._oldest: dict[str, int] = {}  # milliseconds since 1970, by topic
        self._began, self._sampling = time.thread_time(), 0.0
        self._sampled = self._rows = 0

    def check(self, records: Records) -> None:
        """Raises `SinkRejected`, naming the first record that brokers would refuse. Called right after they were
        made."""
        self._require_key(records)
        self._require_headers(records)
        self._require_size(records)
        self._require_partition(records)
        self._require_time(records)
        self._rows += len(records)
        if self._sampled < _SAMPLE:
            began = time.thread_time()
            self._sampled += sum(1 for _ in records)
            self._sampling += time.thread_time() - began

    def warn_of_age(self) -> None:
        """Log a warning for each topic whose brokers will soon refuse a record that they take now."""
        for topic, oldest in self._oldest.items():
            if (before := self._limits[topic].before) is None:
                continue
            left = timedelta(milliseconds=oldest + before[1] - _milliseconds(self._now))
            if left < _SOON:
                until = (self._now + left).astimezone(UTC).isoformat(timespec="seconds")
                text = "%s: topic %s takes the oldest of these records until %s (%s=%d): %s"
                _log.warning(text, self._who, topic, until, *before, "if they are sent later, raise that")

    def require_one_transaction(self, longer: str) -> None:
        """Raises `PreflightRefused` if the epoch could surely never be sent in one transaction; warns if it may not.
        `longer`: how a person gives it more time."""
        least = self._least_seconds()
        told = f"{self._who}: to make these {self._rows:,} records alone takes {least:.1f} s of CPU"
        if least > self._timeout:
            raise PreflightRefused(
                f"{told}, and brokers abort a transaction after transaction_timeout={self._timeout:g} s: the epoch "
                f"could never be published. Deploy a longer transaction_timeout, or {longer}; or give an epoch less"
            )
        if least * _USUALLY > self._timeout:
            _log.warning("%s, and sending takes longer: transaction_timeout=%g s may be too short", told, self._timeout)

    def _least_seconds(self) -> float:
        """To make all records, and one Python object of each, as the client wants them."""
        making = time.thread_time() - self._began - self._sampling
        return making + (self._sampling / self._sampled * self._rows if self._sampled else 0.0)

    def _require_key(self, records: Records) -> None:
        if self._limits[records.topic].keyed and records.keys is not None and records.keys.null_count:
            place = pc.index(pc.is_null(records.keys), True).as_py()
            raise self._refusal(records, place, "has no key, and the topic is compacted (cleanup.policy)")

    def _require_size(self, records: Records) -> None:
        parts = [one for one in (records.keys, records.values, records.headers) if one is not None]
        sizes = [pc.fill_null(pc.binary_length(one), 0).cast(pa.int64()) for one in parts]
        total = sizes[0]
        for more in sizes[1:]:
            total = pc.add(total, more)
        if records.further is not None:
            total = pc.add(total, _sizes_of_headers(records.further))
        limits = self._limits[records.topic]
        if (place := _first_outside(total, 0, limits.record_bytes - self._named)) is not None:
            size = total[place].as_py() + self._named
            why = f"has {size} bytes, {_shown(limits.size)} leaves {limits.record_bytes}"
            raise self._refusal(records, place, why)

    def _require_headers(self, records: Records) -> None:
        if records.further is None:
            return
        names = pc.struct_field(pc.list_flatten(records.further), "key")
        rows = pc.list_parent_indices(records.further)
        for found, why in (
            (pc.is_null(names), "has a header without a name"),
            (pc.match_substring(names, "\0"), "has a header with a NUL in its name"),
            (pc.is_in(names, pa.array(RESERVED)), f"has a header of its own by one of the names {', '.join(RESERVED)}"),
        ):
            if (place := pc.index(found, True).as_py()) >= 0:
                raise self._refusal(records, rows[place].as_py(), why)

    def _require_partition(self, records: Records) -> None:
        if records.partitions is None:
            return
        there = self._limits[records.topic].partitions
        if (place := _first_outside(records.partitions, 0, there - 1)) is not None:
            found = records.partitions[place].as_py()
            raise self._refusal(records, place, f"is for partition {found}, the topic has {there}")

    def _require_time(self, records: Records) -> None:
        if records.times is None or not len(records):
            return
        self._require_after(records)
        self._require_before(records)
        oldest: int = pc.min(records.times).as_py()
        self._oldest[records.topic] = min(oldest, self._oldest.get(records.topic, oldest))

    def _require_before(self, records: Records) -> None:
        if (before := self._limits[records.topic].before) is None:
            return
        kept_back = min(int(self._timeout * 1000), before[1] // 2)
        place = _first_outside(records.times, _milliseconds(self._now) - before[1] + kept_back, _ANY)
        if place is not None:
            why = (
                f"has a time further in the past than {_shown(before)} allows, {kept_back / 1000:.0f} s kept back to "
                "send it"
            )
            raise self._refusal(records, place, why)

    def _require_after(self, records: Records) -> None:
        if (after := self._limits[records.topic].after) is None:
            return
        place = _first_outside(records.times, 0, min(_ANY, _milliseconds(self._now) + after[1]))
        if place is not None:
            raise self._refusal(records, place, f"has a time further in the future than {_shown(after)} allows")

    def _refusal(self, records: Records, place: int, why: str) -> SinkRejected:
        return SinkRejected(
            f"{self._who}: {records.name(place)} {why}. It couldn't be sent after the decision: leave such rows "
            f"away in the transform, or change the settings of topic {records.topic}"
        )


def _sizes_of_headers(column: pa.Array) -> pa.Array:
    """Bytes, of each row's."""
    found = pc.list_flatten(column)
    parts = [pc.fill_null(pc.binary_length(pc.struct_field(found, one)), 0) for one in ("key", "value")]
    each = pc.add(pc.add(*parts).cast(pa.int64()), HEADER_BYTES)
    rows = pc.list_parent_indices(column).to_numpy()
    return pa.array(np.bincount(rows, weights=each.to_numpy(), minlength=len(column)).astype(np.int64))


def _shown(limit: tuple[str, int]) -> str:
    return "{}={}".format(*limit)


def _first_outside(column: pa.Array, least: int, most: int) -> int | None:
    """Where the first value stands that is null or not in least … most."""
    within = pc.fill_null(pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most)), False)
    place: int = pc.index(within, False).as_py()
    return None if place < 0 else place


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
