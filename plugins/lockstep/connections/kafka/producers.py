"""Producers of some topics' records: in a transaction, or without one; as fast as Python can hand them over.

With transactions the order is the point. `init_transactions` ends whatever an older process has open under this
transactional id and fences it for good; what is looked up before that could be changed right after. Stable ids fence,
random ones do not (KIP-98).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lockstep.connections.kafka.connection import Settings, client, code_of, connect
from lockstep.errors import PublishBlocked, PublishBusy, SinkUnavailable

#: What a producer takes for "now" and "as the partitioner says".
NO_TIME, NO_PARTITION = 0, -1
Header = tuple[str, bytes | str | None]
#: Key, value, partition, milliseconds since 1970, header, further headers; a tuple, as making anything else of a row
#: takes longer than sending it.
Record = tuple[bytes | None, bytes | None, int, int, bytes | None, list[Header] | None]

#: Large batches, as an epoch is there at once; lz4 takes no more time than it saves, as headers repeat. What one
#: process holds of records that brokers have not taken yet is bounded by bytes, and by number, as librdkafka needs some
#: hundred bytes more for each. A connection may say otherwise.
_BATCH_BYTES = 1_000_000
_TUNING: Mapping[str, Any] = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.kbytes": 65_536,
    "queue.buffering.max.messages": 100_000,
}
_PAUSE = 0.01
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
#: What brokers refuse for good when a topic's settings have changed since the vote, and which ones those are.
_TAKES_LESS = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise the topic's max.message.bytes, and the connection's message.max.bytes",
    KafkaError.INVALID_MSG: "raise the topic's max.message.bytes",
    KafkaError.RECORD_LIST_TOO_LARGE: "raise the topic's segment.bytes",
    KafkaError.INVALID_TIMESTAMP: (
        "raise the topic's message.timestamp.before.max.ms, or message.timestamp.after.max.ms for times to come, at "
        "least until the epoch is published"
    ),
    KafkaError.INVALID_RECORD: (
        "the topic takes no record without a key while its cleanup.policy has compact in it: set that to delete, at "
        "least until the epoch is published"
    ),
}


@dataclass(frozen=True)
class Route:
    """How records get to topics, one or more. `header`: the name of theirs. `timeout`: seconds for one try at sending
    an epoch. `longer`: how a person gives it another timeout."""

    settings: Settings = field(repr=False)
    who: str
    topics: tuple[str, ...]
    header: str
    partitioner: str
    timeout: float
    longer: str = ""


class _RecordProducer(ABC):
    """A client that sends records, and batches, of no more than `most_bytes`: what each of the topics takes by its
    max.message.bytes. A batch of several records is one that any of them takes.

    Without being told, librdkafka would refuse records above its own limit, and brokers its batches above theirs.
    """

    def __init__(self, route: Route, most_bytes: Collection[int], own: Mapping[str, Any]) -> None:
        self._route = route
        sizes = {"batch.size": min(_BATCH_BYTES, *most_bytes), "message.max.bytes": max(1000, *most_bytes)}
        always = {"message.timeout.ms": int(route.timeout * 1000), "delivery.report.only.error": True}
        settings = client(route.settings)
        self._further: Mapping[str, bytes] = {}
        self._producer = Producer({**_TUNING, **sizes, **settings, "partitioner": route.partitioner, **own, **always})

    def add_headers(self, headers: Mapping[str, bytes]) -> None:
        """Of every record of the route's topics from now on, besides its own."""
        self._further = headers

    def _produce(self, records: Iterable[Record], topic: str) -> int:
        """How many were handed over: all. Waits while too much is under way."""
        produce, count = self._producer.produce, 0
        # one for all: the client copies what stands in it
        header: dict[str, bytes] = dict(self._further) if topic in self._route.topics else {}
        try:
            for key, value, partition, milliseconds, name, more in records:
                if name is not None:
                    header[self._route.header] = name
                headers = header if more is None else [*header.items(), *more]
                # by position (two are callbacks): names would cost a third more
                arguments = (topic, value, key, partition, None, None, milliseconds, headers)
                try:
                    produce(*arguments)
                except BufferError:
                    self._wait_to_produce(arguments)
                count += 1
        except BufferError:
            raise self._stuck() from None
        except KafkaException as error:
            raise self._named("sending", code_of(error)) from None
        return count

    def _wait_to_produce(self, arguments: tuple[Any, ...]) -> None:
        deadline = time.monotonic() + self._route.timeout
        while True:
            self._producer.poll(_PAUSE)
            try:
                self._producer.produce(*arguments)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise

    def close(self) -> None:
        """Drop what is under way, and end the client's threads."""
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(1)
        del self._producer

    @abstractmethod
    def _stuck(self) -> Exception:
        """What to raise when nothing was taken for the route's `timeout`."""

    @abstractmethod
    def _named(self, doing: str, code: KafkaError) -> Exception:
        """What to raise for an error of the client."""

    def _refusal(self, text: str, code: KafkaError) -> PublishBlocked | None:
        """What to raise if the brokers won't take a record as long as the topic is set as it is."""
        advice = _TAKES_LESS.get(code.code())
        return PublishBlocked(f"{text}; it was decided, so it has to be sent: {advice}") if advice else None


class PlainProducer(_RecordProducer):
    """Without transactions: what was sent stays sent. `reported`: every record's report is awaited.

    It is a session of a redo sink.
    """

    def __init__(self, route: Route, most_bytes: Collection[int], *, reported: bool) -> None:
        refusals: list[KafkaError] = []  # apart from the producer, which would otherwise know itself and live on

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None and not refusals:
                refusals.append(error)

        safe = {"acks": "all", "enable.idempotence": "true"} if reported else {"acks": "0"}
        super().__init__(route, most_bytes, {**safe, "on_delivery": report})
        self._refusals, self._reported = refusals, reported
        self.claimed = True

    def open(self) -> None:
        """Raises `SinkUnavailable` if no broker answers."""
        try:
            connect(self._producer, self._route.topics[0], self._route.timeout)
        except KafkaException as error:
            raise self._named("sending", code_of(error)) from None

    def send(self, topic: str, records: Iterable[Record]) -> None:
        self._produce(records, topic)

    def flush(self) -> None:
        """Every record has been reported when this returns, or what is under way was given one chance.

        Raises `SinkUnavailable`, `PublishBlocked`.
        """
        if not self._reported:
            self._producer.flush(5.0)
            return
        deadline = time.monotonic() + self._route.timeout
        while (waiting := self._producer.flush(1.0)) and time.monotonic() < deadline:
            pass
        if self._refusals:
            raise self._named("sending", self._refusals[0])
        if waiting:
            raise SinkUnavailable(f"{self._route.who}: {waiting} records had no answer in {self._route.timeout:.0f} s")

    def _stuck(self) -> Exception:
        return SinkUnavailable(f"{self._route.who}: the brokers took nothing in {self._route.timeout:.0f} s")

    def _named(self, doing: str, code: KafkaError) -> Exception:
        text = f"{self._route.who}: {doing}: {code.name()}: {code.str()}"
        return self._refusal(text, code) or SinkUnavailable(text)


class TransactionalProducer(_RecordProducer):
    """One transaction at a time. Errors after `open` are `PublishBusy`, `PublishBlocked` or `SinkUnavailable`.

    Brokers give a transaction up after the route's `timeout`.
    """

    def __init__(self, route: Route, most_bytes: Collection[int], id: str) -> None:
        """`id`: the transactional id. Nothing is sent before `open`."""
        own = {"transactional.id": id, "transaction.timeout.ms": int(route.timeout * 1000)}
        super().__init__(route, most_bytes, own)
        self._began: float | None = None
        self.sent = 0  #: records of the route's topics

    def open(self) -> None:
        """Fence every older process of this id, and end what it had open."""
        self._do("finding a broker", lambda: connect(self._producer, self._route.topics[0], self._route.timeout))
        self._do("opening its transactions", lambda: self._producer.init_transactions(self._route.timeout))

    def begin(self) -> None:
        self._do("beginning a transaction", self._producer.begin_transaction)
        self._began = time.monotonic()

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Hand records over; waits while too much is under way."""
        self.sent += self._produce(records, topic)

    def send_elsewhere(self, topic: str, record: Record) -> None:
        """A record of another topic, in the same transaction."""
        self._produce([record], topic)

    def commit(self) -> None:
        """Durable, and every record of it, when this returns. An error doesn't tell the outcome."""
        self._do("committing", lambda: self._producer.commit_transaction(self._route.timeout))

    def close(self) -> None:
        """End without an outcome: what is open is aborted here, or by the next process that opens this id."""
        with suppress(KafkaException):
            if self._began is not None:
                self._producer.abort_transaction(5)
        super().close()

    def _do(self, doing: str, step: Callable[[], object]) -> None:
        deadline = time.monotonic() + self._route.timeout
        while True:
            try:
                step()
                return
            except KafkaException as error:
                if not code_of(error).retriable() or time.monotonic() > deadline:
                    raise self._named(doing, code_of(error)) from None

    def _stuck(self) -> Exception:
        return self._late(f"{self._route.who}: sending: the brokers took nothing more")

    def _named(self, doing: str, code: KafkaError) -> Exception:
        text = f"{self._route.who}: {doing}: {code.name()}: {code.str()}"
        if code.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return PublishBlocked(
                f"{text}: transaction_timeout={self._route.timeout:g} is more than the brokers' "
                f"transaction.max.timeout.ms: raise that, or say less: {self._route.longer}"
            )
        if blocked := self._refusal(text, code):
            return blocked
        if self._outlived:
            return self._late(text)
        if code.code() in _FENCED:
            return PublishBusy(f"{text}; somebody else publishes this epoch")
        if code.txn_requires_abort():
            return PublishBlocked(f"{text}; nothing of it is visible, it will be sent again")
        return SinkUnavailable(text)

    @property
    def _outlived(self) -> bool:
        """Whether brokers may have given the transaction up for its age."""
        return self._began is not None and time.monotonic() - self._began >= self._route.timeout

    def _late(self, text: str) -> PublishBlocked:
        return PublishBlocked(
            f"{text}; the transaction outlived transaction_timeout={self._route.timeout:g} s, in which an epoch has to "
            f"be sent ({self.sent:,} records were handed over). Nothing of it is visible, it is sent again: deploy "
            f"a longer transaction_timeout, or {self._route.longer}"
        )
