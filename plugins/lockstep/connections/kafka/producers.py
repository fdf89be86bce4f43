"""Producers of records, with and without transactions.

With transactions the order matters: `init_transactions` ends what an older process has open under the transactional id
and fences that process, so look for markers after it, not before. Only stable ids fence (KIP-98).
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

#: A producer's values for "now" and "by the partitioner".
NO_TIME, NO_PARTITION = 0, -1
Header = tuple[str, bytes | str | None]
#: Key, value, partition, milliseconds since 1970, header, extra headers. A tuple: creating an object would take longer
#: than sending the record.
Record = tuple[bytes | None, bytes | None, int, int, bytes | None, list[Header] | None]

#: Large batches, since all records of an epoch exist; lz4 saves more time than it takes: headers repeat. The queue is
#: limited by bytes and by records: librdkafka needs some hundred bytes more per record. A connection can override
#: these settings.
_BATCH_BYTES = 1_000_000
_TUNING: Mapping[str, Any] = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.kbytes": 65_536,
    "queue.buffering.max.messages": 100_000,
}
_PAUSE = 0.01
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
#: Refusals that last while a topic's settings are as they are (they changed since the vote), and the remedy.
_TAKES_LESS = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise the topic's max.message.bytes, and the connection's message.max.bytes",
    KafkaError.INVALID_MSG: "raise the topic's max.message.bytes",
    KafkaError.RECORD_LIST_TOO_LARGE: "raise the topic's segment.bytes",
    KafkaError.INVALID_TIMESTAMP: (
        "raise the topic's message.timestamp.before.max.ms, or message.timestamp.after.max.ms for future times, at "
        "least until the epoch is published"
    ),
    KafkaError.INVALID_RECORD: (
        "the topic takes no record without a key while its cleanup.policy has compact in it: set that to delete, at "
        "least until the epoch is published"
    ),
}


@dataclass(frozen=True)
class Route:
    """How records are sent to one or more topics. `header`: the name of the records' header. `timeout`: seconds for one
    attempt at sending an epoch. `longer`: the command that sets another timeout."""

    settings: Settings = field(repr=False)
    who: str
    topics: tuple[str, ...]
    header: str
    partitioner: str
    timeout: float
    longer: str = ""


class _RecordProducer(ABC):
    """A client that sends records and batches. `max_bytes`: the max.message.bytes of each topic; a batch of several
    records fits the smallest of them.

    By default librdkafka would refuse records above its own limit, and brokers its batches above theirs.
    """

    def __init__(self, route: Route, max_bytes: Collection[int], own: Mapping[str, Any]) -> None:
        self._route = route
        sizes = {"batch.size": min(_BATCH_BYTES, *max_bytes), "message.max.bytes": max(1000, *max_bytes)}
        always = {"message.timeout.ms": int(route.timeout * 1000), "delivery.report.only.error": True}
        settings = client(route.settings)
        self._extra: Mapping[str, bytes] = {}
        self._producer = Producer({**_TUNING, **sizes, **settings, "partitioner": route.partitioner, **own, **always})

    def add_headers(self, headers: Mapping[str, bytes]) -> None:
        """Add these headers to every record of the route's topics from now on."""
        self._extra = headers

    def _produce(self, records: Iterable[Record], topic: str) -> int:
        """Hand over all records and return their number. Waits while the queue is full."""
        produce, count = self._producer.produce, 0
        # reused for all records: the client copies its content
        header: dict[str, bytes] = dict(self._extra) if topic in self._route.topics else {}
        try:
            for key, value, partition, milliseconds, name, more in records:
                if name is not None:
                    header[self._route.header] = name
                headers = header if more is None else [*header.items(), *more]
                # by position (two are callbacks): keywords would cost a third more
                arguments = (topic, value, key, partition, None, None, milliseconds, headers)
                try:
                    produce(*arguments)
                except BufferError:
                    self._wait_to_produce(arguments)
                count += 1
        except BufferError:
            raise self._stalled() from None
        except KafkaException as error:
            raise self._error("sending", code_of(error)) from None
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
        """Drop the queue and end the client's threads."""
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(1)
        del self._producer

    @abstractmethod
    def _stalled(self) -> Exception:
        """Return the error for a queue that brokers took nothing from for the route's `timeout`."""

    @abstractmethod
    def _error(self, doing: str, code: KafkaError) -> Exception:
        """Return the error to raise for an error of the client."""

    def _refusal(self, text: str, code: KafkaError) -> PublishBlocked | None:
        """Return the error if brokers refuse a record until the topic's settings change."""
        advice = _TAKES_LESS.get(code.code())
        return PublishBlocked(f"{text}; it was decided, so it has to be sent: {advice}") if advice else None


class PlainProducer(_RecordProducer):
    """Sends without transactions: what was sent stays. `reported`: wait for the report of every record. Also serves as
    the session of a write-ahead sink."""

    def __init__(self, route: Route, max_bytes: Collection[int], *, reported: bool) -> None:
        refusals: list[KafkaError] = []  # separate from the producer: a reference cycle would keep it alive

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None and not refusals:
                refusals.append(error)

        safe = {"acks": "all", "enable.idempotence": "true"} if reported else {"acks": "0"}
        super().__init__(route, max_bytes, {**safe, "on_delivery": report})
        self._refusals, self._reported = refusals, reported
        self.claimed = True

    def open(self) -> None:
        """Raises `SinkUnavailable` if no broker answers."""
        try:
            connect(self._producer, self._route.topics[0], self._route.timeout)
        except KafkaException as error:
            raise self._error("sending", code_of(error)) from None

    def send(self, topic: str, records: Iterable[Record]) -> None:
        self._produce(records, topic)

    def flush(self) -> None:
        """Wait until every record is reported; without `reported` wait 5 seconds at most. Raises `SinkUnavailable`,
        `PublishBlocked`."""
        if not self._reported:
            self._producer.flush(5.0)
            return
        deadline = time.monotonic() + self._route.timeout
        while (waiting := self._producer.flush(1.0)) and time.monotonic() < deadline:
            pass
        if self._refusals:
            raise self._error("sending", self._refusals[0])
        if waiting:
            raise SinkUnavailable(f"{self._route.who}: {waiting} records had no answer in {self._route.timeout:.0f} s")

    def _stalled(self) -> Exception:
        return SinkUnavailable(f"{self._route.who}: the brokers took nothing in {self._route.timeout:.0f} s")

    def _error(self, doing: str, code: KafkaError) -> Exception:
        text = f"{self._route.who}: {doing}: {code.name()}: {code.str()}"
        return self._refusal(text, code) or SinkUnavailable(text)


class TransactionalProducer(_RecordProducer):
    """Sends one transaction at a time; brokers abort it after the route's `timeout`. Errors are `PublishBusy`,
    `PublishBlocked` or `SinkUnavailable`."""

    def __init__(self, route: Route, max_bytes: Collection[int], id: str) -> None:
        """`id`: the transactional id."""
        own = {"transactional.id": id, "transaction.timeout.ms": int(route.timeout * 1000)}
        super().__init__(route, max_bytes, own)
        self._began: float | None = None
        self.sent = 0  #: records of the route's topics

    def open(self) -> None:
        """Fence every older process with this id, and end its transaction."""
        self._do("finding a broker", lambda: connect(self._producer, self._route.topics[0], self._route.timeout))
        self._do("opening its transactions", lambda: self._producer.init_transactions(self._route.timeout))

    def begin(self) -> None:
        self._do("beginning a transaction", self._producer.begin_transaction)
        self._began = time.monotonic()

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Hand records over; waits while the queue is full."""
        self.sent += self._produce(records, topic)

    def send_elsewhere(self, topic: str, record: Record) -> None:
        """Send a record to another topic in the same transaction."""
        self._produce([record], topic)

    def commit(self) -> None:
        """Commit durably, with every record. After an error the outcome is unknown."""
        self._do("committing", lambda: self._producer.commit_transaction(self._route.timeout))

    def close(self) -> None:
        """Close. An open transaction is aborted here, or by the next process that opens this id."""
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
                    raise self._error(doing, code_of(error)) from None

    def _stalled(self) -> Exception:
        return self._timed_out(f"{self._route.who}: sending: the brokers took nothing more")

    def _error(self, doing: str, code: KafkaError) -> Exception:
        text = f"{self._route.who}: {doing}: {code.name()}: {code.str()}"
        if code.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return PublishBlocked(
                f"{text}: transaction_timeout={self._route.timeout:g} is more than the brokers' "
                f"transaction.max.timeout.ms: raise that, or set less: {self._route.longer}"
            )
        if blocked := self._refusal(text, code):
            return blocked
        if self._outlived:
            return self._timed_out(text)
        if code.code() in _FENCED:
            return PublishBusy(f"{text}; another process publishes this epoch")
        if code.txn_requires_abort():
            return PublishBlocked(f"{text}; nothing of it is visible, it will be sent again")
        return SinkUnavailable(text)

    @property
    def _outlived(self) -> bool:
        """True if brokers may have aborted the transaction because of its age."""
        return self._began is not None and time.monotonic() - self._began >= self._route.timeout

    def _timed_out(self, text: str) -> PublishBlocked:
        return PublishBlocked(
            f"{text}; the transaction outlived transaction_timeout={self._route.timeout:g} s, in which an epoch has to "
            f"be sent ({self.sent:,} records were handed over). Nothing of it is visible, it is sent again: deploy "
            f"a longer transaction_timeout, or {self._route.longer}"
        )
