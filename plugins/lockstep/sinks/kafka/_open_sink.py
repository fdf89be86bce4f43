"""The open KafkaSink, without transactions (`OpenKafkaSink`) and with them (`TransactionalKafkaSink`).

The vote records how the epoch is sent: `Vote.handle` is "shards=3", "avro={…}", both with a space between, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep.connections.kafka.cluster import (
    Cluster,
    limits_of,
    require_durable,
    require_lasting_outcomes,
    require_transactions,
)
from lockstep.connections.kafka.consumers import committed_records
from lockstep.connections.kafka.producers import PlainProducer, Route
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import PreflightRefused, PublishBlocked, SinkRejected, TargetChanged
from lockstep.sinks.append_only.base import OnRestate
from lockstep.sinks.append_only.records import Origin
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka._committers import KafkaMarkerCommitter, KafkaSession, MarkerTopic, ShardMarker
from lockstep.sinks.kafka._records import (
    HEADER,
    HEADER_BYTES,
    REPLACES,
    RecordChecks,
    RecordColumns,
    headers_of,
    require_fitting_topic,
)
from lockstep.sinks.values import Batches, Guarantee, Marker, Publication, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, Session, WriteAheadSink

if TYPE_CHECKING:
    from lockstep.sinks.kafka._avro import Schemas
    from lockstep.sinks.kafka._sink import KafkaSink


_HANDLE = re.compile(r"(?:shards=(?P<shards>\d+))? ?(?:avro=(?P<avro>.*))?", re.DOTALL)


def voted_with(vote: Vote, *, shards: int | None = None, avro: str | None = None) -> Vote:
    """Return the vote with the number of shards, and the schemas (`Writers.to_text`), in its handle."""
    settings = {"shards": shards or shards_voted(vote), "avro": avro or avro_voted(vote)}
    return replace(vote, handle=" ".join(f"{name}={value}" for name, value in settings.items() if value) or None)


def shards_voted(vote: Vote) -> int | None:
    """Return the number of shards; None without transactions, and for the vote of a rebuilt ledger."""
    text = _voted(vote, "shards")
    return int(text) if text else None


def avro_voted(vote: Vote) -> str | None:
    return _voted(vote, "avro")


def _voted(vote: Vote, name: str) -> str | None:
    match = _HANDLE.fullmatch(vote.handle or "")
    return match[name] if match else None


_SEPARATOR = " "


class OpenKafkaSink(WriteAheadSink):
    """Sends without transactions: at least once, or no guarantee."""

    sink: KafkaSink

    def __init__(
        self,
        sink: KafkaSink,
        owner: SinkName,
        cluster: Cluster,
        route: Route,
        columns: RecordColumns,
        committer: CheckpointCommitter,
        schemas: Schemas | None = None,
    ) -> None:
        """`schemas`: the registry's, if key or value is Avro."""
        super().__init__(sink)
        self._schemas = schemas
        self.committer = committer
        self.cluster, self.columns = cluster, columns
        self._owner, self._route = owner, route

    def close(self) -> None:
        self.committer.close()
        self.cluster.close()

    # --- before the decision ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        who = self._route.who
        for topic in map(self.cluster.require_topic, self._route.topics):
            require_fitting_topic(self.cluster.topic_settings(topic.name), topic.name, self.columns, who)
            if self.guarantee is not Guarantee.NONE:
                require_durable(self.cluster, topic)
        self._create_resource()
        if schemas is None:
            if self._schemas is not None:
                self._schemas.require_there()
            return
        for output in self.outputs:
            if output not in schemas:
                raise PreflightRefused(f"{who}: the transform gave no output {output}, but {sorted(schemas)}")
            if faults := list(self.columns.faults(schemas[output])):
                raise PreflightRefused(f"{who}: output {output}: {'; '.join(faults)}")
            self._find_writers(output, schemas[output])

    def _find_writers(self, output: str, schema: pa.Schema) -> None:
        """Find the schemas before the vote, which records them: publishing doesn't need the registry."""
        if self._schemas is not None:
            key = None if self.columns.key is None else schema.field(self.columns.key)
            writers = self._schemas.find(output, self.columns.body(schema), key)
            self.columns = replace(self.columns, writers=writers)

    @property
    def keeps_replaced(self) -> bool:
        return True

    def require_replaceable(self) -> None:
        if self.sink.on_restate != OnRestate.SEND:
            raise PreflightRefused(
                f"sink {self.name}: records that were sent can't be taken back: set on_restate='send' in the sink, and "
                f"the replacing epoch is sent after the replaced one, its records with the header {REPLACES}"
            )
        if self.guarantee is Guarantee.NONE:
            raise PreflightRefused(
                f"sink {self.name}: with guarantee='none' it isn't recorded which epochs were sent, so none can be "
                "replaced: set guarantee='exactly_once', or 'at_least_once' with a committer"
            )

    def _create_resource(self) -> None:
        """Create the committer's table or folder; plain producers need nothing of the brokers."""
        self.committer.create_resource()

    def target_id(self) -> str:
        """Return the ids of the topics, of the marker topic, too. A topic that was deleted and created again
        differs."""
        return _SEPARATOR.join(self._topic_ids().values())

    def _topic_ids(self) -> dict[str, str]:
        """Return the id of every topic that belongs to the target, by name."""
        topics = {name: self.cluster.topic(name) for name in self._route.topics}
        return {name: self._require_id(name, topic.id if topic else None) for name, topic in topics.items()}

    def _require_id(self, name: str, id: str | None) -> str:
        if id is None:
            raise self._changed(f"topic {name} is gone")
        return id

    def _require_target(self, vote: Vote) -> None:
        for (name, id), voted in zip(self._topic_ids().items(), vote.target_id.split(_SEPARATOR), strict=True):
            if voted != id:
                raise self._changed(f"topic {name} is {id}, and was {voted} when it voted")

    def _changed(self, what: str) -> TargetChanged:
        return TargetChanged(
            f"{self._route.who}: {what}: the connection leads elsewhere, or the topic was deleted, or some of its "
            "records were. Nothing was sent. Point the connection back. If the topic is lost, find the records of a "
            f"committed epoch by their header {HEADER}, and run `lockstep resolve … applied`, or `not-applied` to "
            "send it; for other epochs create the topic again and run `renumber --lacking`"
        )

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Make every record once, and refuse what a broker would refuse."""
        for replaced in epoch.replaced:
            self._require_shown(replaced, self.find_marker(replaced.id), epoch)
        further = sum(len(name) + len(value) + HEADER_BYTES for name, value in headers_of(epoch).items())
        limits = {topic: limits_of(self.cluster, topic) for topic in self._route.topics}
        checks = RecordChecks(limits, self._route.who, datetime.now(UTC), self._route.timeout, further)
        rows: dict[str, int] = {}
        for batches in wal:
            rows[batches.output] = 0
            if self.columns.writers is None:
                self._find_writers(batches.output, batches.schema)
            for records in self.columns.records(batches, self.origin(batches.output, epoch.id)):
                checks.check(records)
                rows[batches.output] += len(records)
        self._conclude(checks)
        writers = self.columns.writers
        return voted_with(
            Vote(epoch.token, None, self.target_id(), rows), avro=None if writers is None else writers.to_text()
        )

    def _conclude(self, checks: RecordChecks) -> None:
        """Check all records together."""
        checks.warn_of_age()

    # --- after the decision ---

    def _session(self, epoch: SinkEpoch, vote: Vote) -> AbstractContextManager[Session]:
        self._write_as_voted(vote)
        return super()._session(epoch, vote)

    def _write_as_voted(self, vote: Vote) -> None:
        """Use the schemas of the vote from now on."""
        if self._schemas is None:
            return
        from lockstep.sinks.kafka._avro import Writers

        if (text := avro_voted(vote)) is None:
            raise PublishBlocked(
                f"{self._route.who}: the vote doesn't name the Avro schemas of its records; votes of a rebuilt ledger "
                "don't: nothing was sent"
            )
        self.columns = replace(self.columns, writers=Writers.of_text(text))

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, KafkaSession | PlainProducer)
        share = (session.shards, session.open) if isinstance(session, KafkaSession) else ()
        session.add_headers(headers_of(epoch))
        try:
            for records in self.columns.records(batches, self.origin(batches.output, epoch.id), *share):
                if isinstance(session, KafkaSession):
                    session.send(records)
                else:
                    session.send(records.topic, records)
        except SinkRejected as error:  # by another version of this code than the one that voted
            raise PublishBlocked(f"{error}; it was decided, so it has to be sent") from error
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True

    # --- verification ---

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the epoch's committed records that are still in the topics; retention and compaction remove some."""
        prefix = self.origin(output, epoch).key(0)[:-1].encode()
        starts, readers = self._starts(epoch), None if self._schemas is None else self._schemas.readers()
        for topic in self._route.topics:
            ends = self.cluster.all_ends(topic)
            with self.cluster.who.naming(f"reading {topic}"):
                for messages in committed_records(self.cluster.settings, topic, starts.get(topic, {}), ends):
                    yield self.columns.rows(
                        [message for message in messages if _has_header(message, prefix)], schema, readers
                    )

    def _starts(self, epoch: int) -> Mapping[str, Mapping[int, int]]:
        """Return by topic and partition the offset at which an epoch's records may begin; unknown ones are left out."""
        return {}

    def origin(self, output: str, epoch: int) -> Origin:
        """Return the origin that the headers of an output's records name."""
        return Origin(self._owner.deployment, self._owner.pipeline, output, epoch)


class TransactionalKafkaSink(OpenKafkaSink):
    """Sends in transactions, exactly once: an epoch's records and markers become visible together, shard by shard."""

    def __init__(
        self,
        sink: KafkaSink,
        cluster: Cluster,
        route: Route,
        columns: RecordColumns,
        markers: MarkerTopic,
        committer: KafkaMarkerCommitter,
        schemas: Schemas | None = None,
    ) -> None:
        super().__init__(sink, markers.owner, cluster, route, columns, committer, schemas)
        self._markers, self._marker_committer = markers, committer

    def _create_resource(self) -> None:
        """Create the marker topic, after checking that the brokers support transactions."""
        require_transactions(self.cluster, self._route.timeout)
        require_lasting_outcomes(self.cluster)
        require_durable(self.cluster, self._markers.create())

    def _topic_ids(self) -> dict[str, str]:
        name = self._markers.name
        return super()._topic_ids() | {name: self._require_id(name, self._markers.id())}

    def _conclude(self, checks: RecordChecks) -> None:
        super()._conclude(checks)
        checks.require_one_transaction(self._route.longer)

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        self._marker_committer.refuse_shown(epoch)

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        return voted_with(super().validate(epoch, wal), shards=self.sink.shards)

    def _session(self, epoch: SinkEpoch, vote: Vote) -> AbstractContextManager[Session]:
        self._write_as_voted(vote)
        return self._marker_committer.session_of_all(epoch, shards_voted(vote))

    def publish_shard(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches], shard: int) -> Publication | None:
        shards = shards_voted(vote)
        if shards is None or not 0 <= shard < shards:
            return None
        self._require_target(vote)
        if self._marker_committer.has_marker(epoch, shard):
            return Publication.FOUND
        self._write_as_voted(vote)
        with self._marker_committer.session_of_one(epoch, shards, shard) as session:
            publication = self._send_claimed(epoch, wal, session)
        return publication if session.claimed or self._marker_committer.has_marker(epoch, shard) else None

    def _proof(self, epoch: SinkEpoch) -> Marker | None:
        return self._marker_committer.proof(epoch)  # opening a session ends a dead publisher's transaction

    def shard_markers(self, epoch: int) -> Mapping[int, ShardMarker]:
        """Return the epoch's committed markers by shard, once no open transaction can hold another one."""
        return self._markers.find(epoch)

    def find_any_marker(self, epoch: int) -> Marker | None:
        return next((marker.to_marker(epoch) for marker in self._markers.find(epoch, wait=False).values()), None)

    def can_complete(self, epoch: int) -> bool:
        """Return True if the markers name shards and manifest; with Avro they lack the schemas."""
        if self._schemas is not None:
            return False
        variants = {(marker.shards, marker.manifest_hash) for marker in self.shard_markers(epoch).values()}
        return len(variants) == 1

    def _starts(self, epoch: int) -> Mapping[str, Mapping[int, int]]:
        """Return the ends of the partitions before the first of the epoch's shards was sent."""
        markers, topics = self.shard_markers(epoch).values(), self._route.topics
        return {
            topic: _first_of([marker.starts_in(topic, only=len(topics) == 1) for marker in markers]) for topic in topics
        }


def _first_of(starts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    numbers = {number for offsets in starts for number in offsets}
    return {number: min(offsets.get(number, 0) for offsets in starts) for number in numbers}


def _has_header(message: Any, prefix: bytes) -> bool:
    return any(name == HEADER and value.startswith(prefix) for name, value in message.headers() or ())
