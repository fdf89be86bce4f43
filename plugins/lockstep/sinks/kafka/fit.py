"""What a topic takes of a record, asked and checked before the decision: what brokers refuse later blocks the pipeline.

A record's time is measured by the brokers' clock at the moment at which it comes. One that is too far in the future
gets nearer while the epoch waits; one from the past gets older, so that it has to be good for a whole transaction more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.errors import SinkRejected
from lockstep.kafka.cluster import Cluster
from lockstep.sinks.kafka.records import HEADER, Records

_log = logging.getLogger(__name__)

#: What a batch of one record has around it, generously.
RECORD_OVERHEAD = 200
BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
#: Of brokers before 4.0, in both directions, where neither of the two is set.
EITHER = "message.timestamp.difference.max.ms"
_ANY = 2**63 - 1
#: A record that brokers will refuse within this time is worth a line in the log.
_SOON = timedelta(days=1)


@dataclass(frozen=True)
class Limit:
    """A setting and its value."""

    setting: str
    value: int

    def __str__(self) -> str:
        return f"{self.setting}={self.value}"


@dataclass(frozen=True)
class Limits:
    """Of one topic. `before`, `after`: milliseconds between a record's time and now; None: any. `keyed`: compacted."""

    topic: str
    partitions: int
    size: Limit
    before: Limit | None = None
    after: Limit | None = None
    keyed: bool = False

    @property
    def batch_bytes(self) -> int:
        return self.size.value

    @property
    def record_bytes(self) -> int:
        """Key, value and header of the largest record."""
        return self.size.value - RECORD_OVERHEAD

    @classmethod
    def of(cls, topic: str, partitions: int, settings: Mapping[str, str], client: Mapping[str, str] = {}) -> Limits:
        """`settings`: the topic's. `client`: the connection's."""
        sizes = [Limit("max.message.bytes", int(settings.get("max.message.bytes", 1_048_588)))]
        for name, found in (("segment.bytes", settings), ("message.max.bytes", client)):
            sizes += [Limit(name, int(found[name]))] if name in found else []
        own_time = settings.get("message.timestamp.type", "CreateTime") == "CreateTime"
        return cls(
            topic,
            partitions,
            min(sizes, key=lambda one: one.value),
            _time(settings, BEFORE) if own_time else None,
            _time(settings, AFTER) if own_time else None,
            is_compacted(settings),
        )


def is_compacted(settings: Mapping[str, str]) -> bool:
    return "compact" in settings.get("cleanup.policy", "")


def limits_of(cluster: Cluster, topic: str, client: Mapping[str, str]) -> Limits:
    """What the topic's brokers take from a client with these settings."""
    return Limits.of(topic, cluster.require_topic(topic).partitions, cluster.topic_settings(topic), client)


def _time(settings: Mapping[str, str], name: str) -> Limit | None:
    for setting in (name, EITHER):
        if (value := int(settings.get(setting) or _ANY)) < _ANY:
            return Limit(setting, value)
    return None


class Fit:
    """Compares an epoch's records with what their topic takes. `spare`: seconds that one try at sending may take."""

    def __init__(self, limits: Limits, who: str, now: datetime, spare: float) -> None:
        self._limits, self._who, self._now = limits, who, now
        self._spare = int(spare * 1000)
        self._oldest: int | None = None  # milliseconds since 1970

    def require(self, records: Records) -> None:
        """Raises `SinkRejected`, naming the first record that brokers would refuse."""
        self._require_key(records)
        self._require_size(records)
        self._require_partition(records)
        self._require_time(records)

    def tell(self) -> None:
        """Log a warning if brokers will soon refuse a record that they take now."""
        before = self._limits.before
        if self._oldest is None or before is None:
            return
        left = timedelta(milliseconds=self._oldest + before.value - _milliseconds(self._now))
        if left < _SOON:
            until = (self._now + left).astimezone(UTC).isoformat(timespec="seconds")
            text = "%s: topic %s takes the oldest of these records until %s (%s): if they are sent later, raise that"
            _log.warning(text, self._who, self._limits.topic, until, before)

    def _require_key(self, records: Records) -> None:
        if self._limits.keyed and records.keys is not None and records.keys.null_count:
            place = pc.index(pc.is_null(records.keys), True).as_py()
            raise self._refused(records, place, "has no key, and the topic is compacted (cleanup.policy)")

    def _require_size(self, records: Records) -> None:
        parts = [one for one in (records.keys, records.values, records.headers) if one is not None]
        sizes = [pc.fill_null(pc.binary_length(one), 0).cast(pa.int64()) for one in parts]
        total = sizes[0]
        for more in sizes[1:]:
            total = pc.add(total, more)
        if (place := _first_outside(total, 0, self._limits.record_bytes - len(HEADER))) is not None:
            size = total[place].as_py() + len(HEADER)
            why = f"has {size} bytes, {self._limits.size} leaves {self._limits.record_bytes}"
            raise self._refused(records, place, why)

    def _require_partition(self, records: Records) -> None:
        if records.partitions is None:
            return
        if (place := _first_outside(records.partitions, 0, self._limits.partitions - 1)) is not None:
            found = records.partitions[place].as_py()
            raise self._refused(records, place, f"is for partition {found}, the topic has {self._limits.partitions}")

    def _require_time(self, records: Records) -> None:
        if records.times is None or not len(records):
            return
        self._require_after(records)
        self._require_before(records)
        oldest: int = pc.min(records.times).as_py()
        self._oldest = min(oldest, self._oldest or oldest)

    def _require_before(self, records: Records) -> None:
        if (before := self._limits.before) is None:
            return
        kept_back = min(self._spare, before.value // 2)
        place = _first_outside(records.times, _milliseconds(self._now) - before.value + kept_back, _ANY)
        if place is not None:
            why = f"has a time further in the past than {before} allows, {kept_back / 1000:.0f} s kept back to send it"
            raise self._refused(records, place, why)

    def _require_after(self, records: Records) -> None:
        if (after := self._limits.after) is None:
            return
        place = _first_outside(records.times, 0, min(_ANY, _milliseconds(self._now) + after.value))
        if place is not None:
            raise self._refused(records, place, f"has a time further in the future than {after} allows")

    def _refused(self, records: Records, place: int, why: str) -> SinkRejected:
        return SinkRejected(
            f"{self._who}: {records.name(place)} {why}. Brokers would refuse it after the decision: leave such rows "
            f"away in the transform, or change the settings of topic {self._limits.topic}"
        )


def _first_outside(column: pa.Array, least: int, most: int) -> int | None:
    """Where the first value stands that is null or not in least … most."""
    within = pc.fill_null(pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most)), False)
    place: int = pc.index(within, False).as_py()
    return None if place < 0 else place


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
