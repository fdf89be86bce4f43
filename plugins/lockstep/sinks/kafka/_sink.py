"""KafkaSink: rows as records of topics, sent from the WAL after the decision (Flink: KafkaSink)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lockstep.dataset import Dataset
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker, dataset_of, entered_settings
from lockstep.kafka.producers import Route
from lockstep.sinks.append_only.sink import OnRestate, require_on_restate
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import open_committer
from lockstep.sinks.committers.sent import check_guarantee
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka._committer import KafkaMarkerCommitter
from lockstep.sinks.kafka._markers import MarkerTopic
from lockstep.sinks.kafka._open_sink import OpenKafkaSink, TransactionalKafkaSink, sent_committer
from lockstep.sinks.kafka._records import HEADER, RecordColumns
from lockstep.sinks.values import Guarantee, SinkContext

MARKER_TOPIC = "lockstep.markers"
PARTITIONERS = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a", "random")


@dataclass(frozen=True, kw_only=True)
class KafkaSink(Sink):
    """One output to one topic, or to those that its rows name.

    `topic`: its name; or `topics`, several, and `topic_column`, the column of text that names one of them in each row.
    `key`, `value`: columns of text or bytes; without `value` a record is a JSON object of the row. `timestamp`: a
    column, to the millisecond; without it the time of sending. `headers`: a column of ARRAY<STRUCT<key: STRING, value:
    BINARY>>, as `KafkaSource` has them, or of texts. `partition`: a column; without it the `partitioner`, by
    default Java's, so that other producers put a key into the same place. `shards`: transactions an epoch; with more
    than one the epoch appears shard by shard. `transaction_timeout`: seconds after which brokers give up an epoch
    that is being sent; it is sent again. `marker_topic`: where the markers stand, made if missing.
    `guarantee`: "exactly_once" for readers of committed records, "at_least_once" with a `committer` ("postgres:
    <connection id>" or a folder), or "none". `on_restate`: "send" sends an epoch that takes the place of another one
    after that one, its records with the header `lockstep-replaces`; "refuse" has it refused. Raises `InvalidPipeline`.
    """

    name: str = field(kw_only=False)
    output: str
    topic: str | None = None
    topics: Collection[str] | None = None
    topic_column: str | None = None
    connection: str
    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    partition: str | None = None
    headers: str | None = None
    partitioner: str = PARTITIONERS[0]
    shards: int = 1
    guarantee: str = Guarantee.EXACTLY_ONCE  # type: ignore[assignment]  # given as text, it is one
    committer: str | None = None
    marker_topic: str = MARKER_TOPIC
    transaction_timeout: float = 300.0
    on_restate: str = OnRestate.REFUSE

    operational: ClassVar[frozenset[str]] = frozenset({"shards", "transaction_timeout", "on_restate"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        guarantee, committer = check_guarantee(self.name, self.guarantee, self.committer)
        object.__setattr__(self, "guarantee", guarantee)
        object.__setattr__(self, "committer", committer)
        object.__setattr__(self, "on_restate", require_on_restate(self.name, self.on_restate))
        if self.partitioner not in PARTITIONERS:
            raise InvalidPipeline(f"{self._who}: partitioner {self.partitioner!r} is none of {', '.join(PARTITIONERS)}")
        if self.shards < 1:
            raise InvalidPipeline(f"{self._who}: shards is {self.shards}, has to be 1 or more")
        if not self.transaction_timeout >= 1:
            raise InvalidPipeline(
                f"{self._who}: transaction_timeout is {self.transaction_timeout}, has to be 1 second or more"
            )
        self._check_topics()
        if self.marker_topic in self.topic_names:
            raise InvalidPipeline(f"{self._who}: the rows can't go into the topic of the markers")
        if self.shards > 1 and guarantee is not Guarantee.EXACTLY_ONCE:
            raise InvalidPipeline(f"{self._who}: shards are transactions, guarantee={guarantee.value!r} has none")

    def _check_topics(self) -> None:
        if self.topics is not None:
            given = {self.topics} if isinstance(self.topics, str) else set(self.topics)
            object.__setattr__(self, "topics", tuple(sorted(given)))
        if (self.topic is None) == (not self.topics):
            raise InvalidPipeline(f"{self._who}: give either topic, or topics and topic_column")
        if (self.topic is None) != (self.topic_column is not None):
            raise InvalidPipeline(f"{self._who}: topic_column says which of the topics=… a row is for: give both")

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Of every topic that it may send to."""
        return tuple(self.topics or ()) if self.topic is None else (self.topic,)

    @property
    def _who(self) -> str:
        return f"sink {self.name}"

    def arguments(self) -> dict[str, Json]:
        return {name: value for name, value in super().arguments().items() if value is not None}

    def writes_to(self) -> frozenset[str]:
        return frozenset(f"topic {name} of connection {self.connection}" for name in self.topic_names)

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset | tuple[Dataset, ...]]:
        found = tuple(dataset_of(connections[self.connection], name, self._who) for name in self.topic_names)
        return {self.output: found if self.topic is None else found[0]}

    @property
    def numbers_rows(self) -> bool:
        """By a header; some shards may stand while others are still to be sent, and their number isn't the plan's."""
        return True

    def open(self, context: SinkContext) -> OpenKafkaSink:
        owner, route = SinkName.of(context, self.name), self._route(context)
        columns = RecordColumns(
            *(self.key, self.value, self.timestamp, self.partition, self.headers, self.topic_column, self.topic_names)
        )
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            cluster = Cluster(route.settings, Asker(self._who))
            markers = MarkerTopic(cluster, self.marker_topic, owner, self.transaction_timeout)
            committer = KafkaMarkerCommitter(cluster, route, markers, self.shards, self.planned.get("shards", 1))
            return TransactionalKafkaSink(self, cluster, route, columns, markers, committer)
        elsewhere = open_committer(self.name, self.committer, context)
        cluster = Cluster(route.settings, Asker(self._who))  # last, as it is the first to leave something open
        return OpenKafkaSink(self, owner, cluster, route, columns, sent_committer(cluster, route, elsewhere))

    def _route(self, context: SinkContext) -> Route:
        return Route(
            entered_settings(context.dsn(self.connection, self.name), Asker(self._who)),
            self._who,
            self.topic_names,
            HEADER,
            self.partitioner,
            self.transaction_timeout,
            f"`lockstep override {context.pipeline} {self.name} transaction_timeout=… --reason …`",
        )
