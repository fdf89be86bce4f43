"""`KafkaSink`: rows as records of topics, sent from the WAL after the decision (Flink: KafkaSink)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker, dataset_of, entered_settings
from lockstep.connections.kafka.producers import Route
from lockstep.connections.names import Dataset
from lockstep.distribution import naming_extra
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.sinks.append_only.base import OnRestate, require_on_restate
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import check_committer, open_committer
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka._committers import ExternalRecordCommitter, KafkaMarkerCommitter, MarkerTopic
from lockstep.sinks.kafka._open_sink import OpenKafkaSink, TransactionalKafkaSink
from lockstep.sinks.kafka._records import HEADER, RecordColumns
from lockstep.sinks.values import Guarantee, SinkContext

if TYPE_CHECKING:
    from lockstep.sinks.kafka._avro import Schemas

MARKER_TOPIC = "lockstep.markers"
PARTITIONERS = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a", "random")


@dataclass(frozen=True, kw_only=True)
class KafkaSink(Sink):
    """Sends one output to one topic, or to the topics that its rows name.

    `topic`: its name; or `topics`, several, and `topic_column`, the column of text that names one of them in each row.
    `key`, `value`: columns of text or bytes; without `value` a record is a JSON object of the row. `timestamp`: a
    column, to the millisecond; without it the time of sending. `headers`: a column of ARRAY<STRUCT<key: STRING, value:
    BINARY>>, as `KafkaSource` has them, or of texts. `registry`: the id of a connection to a schema registry; with it
    value="avro" is the row as Avro in the registry's wire format, by the newest schema of `subject`, which is
    "<topic>-value" by default, and `key_subject` makes the key Avro, too; `register`: by a schema made of the output's
    columns, which is registered. `partition`: a column; without it the `partitioner`, by default Java's, so that other
    producers put a key into the same partition. `shards`: transactions an epoch; with more than one the epoch appears
    shard by shard. `transaction_timeout`: seconds after which brokers abort an epoch that is being sent; it is sent
    again. `marker_topic`: the topic of the markers, created if missing. `guarantee`: "exactly_once" for readers of
    committed records, "at_least_once" with a `committer` ("postgres: <connection id>" or a folder), or "none".
    `on_restate`: "send" sends an epoch that replaces another one after that one, its records with the header
    `lockstep-replaces`; "refuse" refuses it. Raises `InvalidPipeline`.
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
    registry: str | None = None
    subject: str | None = None
    key_subject: str | None = None
    register: bool = False
    partitioner: str = PARTITIONERS[0]
    shards: int = 1
    guarantee: str = Guarantee.EXACTLY_ONCE  # type: ignore[assignment]  # given as text, it is one
    committer: str | None = None
    marker_topic: str = MARKER_TOPIC
    transaction_timeout: float = 300.0
    on_restate: str = OnRestate.REFUSE

    operational: ClassVar[frozenset[str]] = frozenset({"shards", "transaction_timeout", "on_restate", "register"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        guarantee = self._check_guarantee()
        object.__setattr__(self, "guarantee", guarantee)
        object.__setattr__(self, "committer", check_committer(self.name, self.committer))
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
        self._check_registry()
        if self.marker_topic in self.topic_names:
            raise InvalidPipeline(f"{self._who}: rows can't be sent to the topic of the markers")
        if self.shards > 1 and guarantee is not Guarantee.EXACTLY_ONCE:
            raise InvalidPipeline(f"{self._who}: shards are transactions, guarantee={guarantee.value!r} has none")

    def _check_guarantee(self) -> Guarantee:
        supported = [guarantee for guarantee in Guarantee if guarantee is not Guarantee.AT_MOST_ONCE]
        if self.guarantee not in supported:
            raise InvalidPipeline(f"{self._who}: guarantee={self.guarantee!r} is none of {', '.join(supported)}")
        if (self.guarantee == Guarantee.AT_LEAST_ONCE) != (self.committer is not None):
            raise InvalidPipeline(
                f"{self._who}: guarantee='at_least_once' needs a committer ('postgres:<connection id>' or a folder), "
                f"and nothing else takes one; guarantee is {self.guarantee!r}, committer {self.committer!r}"
            )
        return Guarantee(self.guarantee)

    def _check_topics(self) -> None:
        if self.topics is not None:
            names = {self.topics} if isinstance(self.topics, str) else set(self.topics)
            object.__setattr__(self, "topics", tuple(sorted(names)))
        if (self.topic is None) == (not self.topics):
            raise InvalidPipeline(f"{self._who}: give either topic, or topics and topic_column")
        if (self.topic is None) != (self.topic_column is not None):
            raise InvalidPipeline(f"{self._who}: topic_column names one of topics=… in each row: give both")

    def _check_registry(self) -> None:
        if self.registry is None and (self.subject or self.key_subject or self.register):
            raise InvalidPipeline(f"{self._who}: subject, key_subject and register are a registry's: give registry=…")
        if self.registry is not None and not self._avro:
            raise InvalidPipeline(f"{self._who}: registry goes with value='avro', or with key_subject")
        if self.subject is not None and "value" not in self._avro:
            raise InvalidPipeline(f"{self._who}: subject goes with value='avro'")
        if self.key_subject is not None and self.key is None:
            raise InvalidPipeline(f"{self._who}: key_subject goes with key=…, the column")

    @property
    def _avro(self) -> frozenset[str]:
        """The parts of a record, key and value, that are Avro. Without a registry `avro` may be the name of a
        column."""
        parts = {"value": self.registry is not None and self.value == "avro", "key": self.key_subject is not None}
        return frozenset(part for part, holds in parts.items() if holds)

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The names of all topics that it may send to."""
        return tuple(self.topics or ()) if self.topic is None else (self.topic,)

    @property
    def _who(self) -> str:
        return f"sink {self.name}"

    def arguments(self) -> dict[str, Json]:
        return {name: value for name, value in super().arguments().items() if value is not None}

    def writes_to(self) -> frozenset[str]:
        return frozenset(f"topic {name} of connection {self.connection}" for name in self.topic_names)

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset | tuple[Dataset, ...]]:
        datasets = tuple(dataset_of(connections[self.connection], name, self._who) for name in self.topic_names)
        return {self.output: datasets if self.topic is None else datasets[0]}

    @property
    def numbers_rows(self) -> bool:
        """True: a header holds the row's position, and some shards may be visible while others still have to be
        sent."""
        return True

    def open(self, context: SinkContext) -> OpenKafkaSink:
        owner, route = SinkName.of(context, self.name), self._route(context)
        value = None if "value" in self._avro else self.value
        columns = RecordColumns(
            *(self.key, value, self.timestamp, self.partition, self.headers, self.topic_column, self.topic_names),
            self._avro,
        )
        schemas = self._schemas(context)
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            cluster = Cluster(route.settings, Asker(self._who))
            markers = MarkerTopic(cluster, self.marker_topic, owner, self.transaction_timeout)
            committer = KafkaMarkerCommitter(cluster, route, markers, self.shards)
            return TransactionalKafkaSink(self, cluster, route, columns, markers, committer, schemas)
        records = open_committer(self.name, self.committer, context)
        cluster = Cluster(route.settings, Asker(self._who))  # last: it is the first that leaves something open
        external = ExternalRecordCommitter(cluster, route, records)
        return OpenKafkaSink(self, owner, cluster, route, columns, external, schemas)

    def _schemas(self, context: SinkContext) -> Schemas | None:
        if self.registry is None:
            return None
        with naming_extra("Avro by a schema registry"):
            from lockstep.connections.kafka.schema_registry import SchemaRegistry
            from lockstep.sinks.kafka._avro import Schemas
        connection = self.registry
        advice = "register its schema there, say another subject=… or key_subject=…, or register=True"

        def connect() -> SchemaRegistry:
            return SchemaRegistry(connection, Asker(self._who), context.dsn(connection, self.name), advice)

        values = {name: self.subject or f"{name}-value" for name in self.topic_names if "value" in self._avro}
        keys = dict.fromkeys(self.topic_names, self.key_subject) if self.key_subject is not None else {}
        return Schemas(connect, values, keys, self.register)

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
