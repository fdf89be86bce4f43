"""KafkaSink: rows as records of one topic, sent from the WAL after the decision (Flink: KafkaSink)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Self

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote, require_name
from lockstep.errors import InvalidPipeline, PreflightRefused, PublishBlocked, SinkRejected, TargetChanged
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker, settings_of
from lockstep.sinks.append_only.records import Origin
from lockstep.sinks.base import Batches, Guarantee, Marker, Sink, SinkContext, SinkEpoch
from lockstep.sinks.committers.sent import promised
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka.committer import KafkaMarkerCommitter, KafkaSession
from lockstep.sinks.kafka.effort import Effort
from lockstep.sinks.kafka.fit import Fit, limits_of
from lockstep.sinks.kafka.limits import (
    require_durable,
    require_kept,
    require_lasting_outcomes,
    require_transactions,
)
from lockstep.sinks.kafka.markers import MarkerTopic
from lockstep.sinks.kafka.plain import KafkaSentCommitter, PlainProducer, PlainSession
from lockstep.sinks.kafka.reading import records_of_epoch
from lockstep.sinks.kafka.records import HEADER, RecordColumns
from lockstep.sinks.kafka.transaction import ShardTransaction
from lockstep.sinks.write_ahead import CheckpointCommitter, Session, WriteAheadSink

MARKER_TOPIC = "lockstep.markers"
_SEPARATOR = " "
PARTITIONERS = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a", "random")


class KafkaSink(Sink, WriteAheadSink):
    """One output to one topic.

    `key`, `value`: columns of text or bytes; without `value` a record is a JSON object of the row. `timestamp`: a
    column, to the millisecond; without it the time of sending. `partition`: a column; without it the `partitioner`, by
    default Java's, so that other producers put a key into the same place. `shards`: transactions an epoch; with more
    than one the epoch appears shard by shard. `transaction_timeout`: seconds after which brokers give up an epoch
    that is being sent; it is sent again. `marker_topic`: where the markers stand, made if missing.
    `guarantee`: "exactly_once" for readers of committed records, "at_least_once" with a `committer` ("postgres:
    <connection id>" or a folder), or "none". Raises `InvalidPipeline`.
    """

    operational = frozenset({"shards", "transaction_timeout"})

    def __init__(
        self,
        name: str,
        *,
        output: str,
        topic: str,
        connection: str,
        key: str | None = None,
        value: str | None = None,
        timestamp: str | None = None,
        partition: str | None = None,
        partitioner: str = PARTITIONERS[0],
        shards: int = 1,
        guarantee: str = Guarantee.EXACTLY_ONCE,
        committer: str | None = None,
        marker_topic: str = MARKER_TOPIC,
        transaction_timeout: float = 300.0,
    ) -> None:
        super().__init__(name)
        self._output, self._topic, self._connection = require_name("output", output), topic, connection
        self._columns = RecordColumns(key, value, timestamp, partition)
        self._partitioner, self.shards = partitioner, shards
        self._marker_topic, self._timeout = marker_topic, transaction_timeout
        self._who = f"sink {name}"
        self._check_arguments()
        self._promise(guarantee, committer)

    def _check_arguments(self) -> None:
        if self._partitioner not in PARTITIONERS:
            raise InvalidPipeline(
                f"{self._who}: partitioner {self._partitioner!r} is none of {', '.join(PARTITIONERS)}"
            )
        if self.shards < 1:
            raise InvalidPipeline(f"{self._who}: shards is {self.shards}, has to be 1 or more")
        if not self._timeout >= 1:
            raise InvalidPipeline(f"{self._who}: transaction_timeout is {self._timeout}, has to be 1 second or more")
        if self._topic == self._marker_topic:
            raise InvalidPipeline(f"{self._who}: the rows can't go into the topic of the markers")

    def _promise(self, guarantee: str, committer: str | None) -> None:
        self.guarantee, self._elsewhere = promised(self.name, guarantee, committer)
        if self.shards > 1 and self.guarantee is not Guarantee.EXACTLY_ONCE:
            raise InvalidPipeline(f"{self._who}: shards are transactions, guarantee={guarantee!r} has none")

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self._output,)

    def arguments(self) -> dict[str, Json]:
        always = {
            "name": self.name,
            "output": self._output,
            "topic": self._topic,
            "connection": self._connection,
            "partitioner": self._partitioner,
            "shards": self.shards,
            "guarantee": self.guarantee.value,
            "marker_topic": self._marker_topic,
            "transaction_timeout": self._timeout,
        }
        columns = self._columns
        optional = {
            "key": columns.key,
            "value": columns.value,
            "timestamp": columns.timestamp,
            "partition": columns.partition,
            "committer": self._elsewhere.setting(),
        }
        return always | {name: value for name, value in optional.items() if value is not None}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"topic {self._topic} of connection {self._connection}"})

    @property
    def numbers_rows(self) -> bool:
        """By a header; some shards may stand while others are still to be sent, and their number isn't the plan's."""
        return True

    # --- life cycle ---

    def open(self, context: SinkContext) -> Self:
        self._context = context
        self.owner = SinkName.of(context, self.name)
        self._settings = settings_of(context.dsn(self._connection, self.name), self._who)
        self._cluster = Cluster(self._settings, Asker(self._who))
        self._markers = MarkerTopic(self._cluster, self._settings, self._marker_topic, self.owner, self._timeout)
        self.committer = self._committer(context)
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)
        self.committer.open()
        return self

    def _committer(self, context: SinkContext) -> CheckpointCommitter:
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            return KafkaMarkerCommitter(self, self._markers)
        committer = KafkaSentCommitter(self, self._elsewhere)
        committer.connect(context, self.name)
        return committer

    def close(self) -> None:
        if hasattr(self, "committer"):
            self.committer.close()
        if hasattr(self, "_cluster"):
            self._cluster.close()

    def transaction(self, id: str) -> ShardTransaction:
        """A new transactional producer. Nothing is sent before its `open`."""
        return ShardTransaction(self._settings, self._who, id, self._topic, longer=self._longer, **self._sending())

    @property
    def _longer(self) -> str:
        return f"`lockstep override {self.owner.pipeline} {self.name} transaction_timeout=… --reason …`"

    def plain_producer(self) -> PlainProducer:
        return PlainProducer(self._settings, self._who, self._topic, self.guarantee, **self._sending())

    def _sending(self) -> dict[str, Any]:
        most = limits_of(self._cluster, self._topic, self._settings).batch_bytes
        return {"timeout": self._timeout, "partitioner": self._partitioner, "most_bytes": most}

    # --- before the decision ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        topic = self._cluster.require_topic(self._topic)
        require_kept(self._cluster.topic_settings(self._topic), self._topic, self._columns, self._who)
        if self.guarantee is not Guarantee.NONE:
            require_durable(self._cluster, topic, self._who)
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            require_transactions(self._cluster, self._timeout, self._who)
            require_lasting_outcomes(self._cluster, self._who)
            require_durable(self._cluster, self._markers.create(), self._who)
        self.committer.create_resource()
        if schemas is None:
            return
        if self._output not in schemas:
            raise PreflightRefused(f"{self._who}: the transform gave no output {self._output}, but {sorted(schemas)}")
        if faults := list(self._columns.faults(schemas[self._output])):
            raise PreflightRefused(f"{self._who}: output {self._output}: {'; '.join(faults)}")

    def target_id(self) -> str:
        """Of the topic as it was made, and of the markers': one that is deleted and made anew is another target."""
        return _SEPARATOR.join(self._ids().values())

    def _ids(self) -> dict[str, str]:
        found = self._cluster.topic(self._topic)
        ids = {self._topic: found and found.id}
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            ids[self._marker_topic] = self._markers.id()
        for name, id in ids.items():
            if id is None:
                raise self._changed(f"topic {name} is gone")
        return {name: str(id) for name, id in ids.items()}

    def _require_target(self, vote: Vote) -> None:
        for (name, found), voted in zip(self._ids().items(), vote.target_id.split(_SEPARATOR), strict=True):
            if voted != found:
                raise self._changed(f"topic {name} is {found}, and was {voted} when it voted")

    def _changed(self, what: str) -> TargetChanged:
        return TargetChanged(
            f"{self._who}: {what}: the connection leads elsewhere, or the topic was deleted, or some of its records "
            "were. Nothing was sent. Point the connection back. If the topic is gone for good, look for the epoch's "
            f"records by their header {HEADER}, and say `lockstep resolve … applied`, or `not-applied`, which sends it"
        )

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Make every record once: whatever a broker would refuse is refused while it still can be."""
        fit = Fit(limits_of(self._cluster, self._topic, self._settings), self._who, datetime.now(UTC), self._timeout)
        effort = Effort()
        rows: dict[str, int] = {}
        for batches in wal:
            rows[batches.output] = 0
            for records in self._columns.records(batches, self._origin(batches.output, epoch.id)):
                fit.require(records)
                effort.note(records)
                rows[batches.output] += len(records)
        fit.tell()
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            effort.require_within(self._timeout, self._who, self._longer)
        return Vote(epoch.token, None, self.target_id(), rows)

    # --- after the decision ---

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, KafkaSession | PlainSession)
        try:
            for records in self._columns.records(batches, self._origin(batches.output, epoch.id)):
                session.send(records)
        except SinkRejected as error:  # by another version of this code than the one that voted
            raise PublishBlocked(f"{error}; it was decided, so it has to be sent") from error
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        if isinstance(self.committer, KafkaMarkerCommitter):
            self.committer.refuse_shown(epoch)
        else:
            super().refuse_shown(epoch)

    def _proof(self, epoch: SinkEpoch) -> Marker | None:
        if isinstance(self.committer, KafkaMarkerCommitter):
            return self.committer.proof(epoch)  # a dead publisher's transaction ends when the session opens
        return super()._proof(epoch)

    def ends(self) -> dict[int, int]:
        """The end of each partition of the topic, open transactions included."""
        topic = self._cluster.require_topic(self._topic)
        return self._cluster.ends(self._topic, range(topic.partitions))

    # --- verification ---

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's committed records that still stand in the topic; retention and compaction take some away."""
        starts = self._starts(epoch)
        origin = self._origin(output, epoch)
        for messages in records_of_epoch(self._settings, Asker(self._who), self._topic, starts, self.ends(), origin):
            yield self._columns.rows(messages, schema)

    def _starts(self, epoch: int) -> Mapping[int, int]:
        """Where to begin to look: before the first of the epoch's shards."""
        if self.guarantee is not Guarantee.EXACTLY_ONCE:
            return {}
        found = self._markers.find(epoch)
        numbers = {number for marker in found.values() for number in marker.starts}
        return {number: min(m.starts.get(number, 0) for m in found.values()) for number in numbers}

    def _origin(self, output: str, epoch: int) -> Origin:
        return Origin(self._context.deployment, self._context.pipeline, output, epoch)
