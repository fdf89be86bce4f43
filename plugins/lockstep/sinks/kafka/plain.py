"""KafkaSink without transactions: at least once, with every record's report awaited, or none at all."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message

from lockstep.errors import SinkUnavailable
from lockstep.kafka.connection import Settings, code_of, connect
from lockstep.sinks.base import Guarantee, SinkEpoch
from lockstep.sinks.committers import OutsideCommitter
from lockstep.sinks.committers.sent import SentCommitter
from lockstep.sinks.kafka.records import Record, Records
from lockstep.sinks.kafka.sending import producer, refused, send
from lockstep.sinks.write_ahead import Session

if TYPE_CHECKING:
    from lockstep.sinks.kafka.sink import KafkaSink


@dataclass
class _Reports:
    """The first refusal. Apart from the producer, which would otherwise know itself and live until it is collected."""

    refused: KafkaError | None = None

    def note(self, error: KafkaError | None, _: Message) -> None:
        self.refused = self.refused or error


class PlainProducer:
    """Sends, and with `guarantee` at least once knows of every record that the brokers have it."""

    def __init__(
        self,
        settings: Settings,
        who: str,
        topic: str,
        guarantee: Guarantee,
        *,
        timeout: float,
        partitioner: str,
        most_bytes: int,
    ) -> None:
        self._who, self._topic, self._timeout, self._reports = who, topic, timeout, _Reports()
        safe = {"acks": "all", "enable.idempotence": "true"} if guarantee is Guarantee.AT_LEAST_ONCE else {"acks": "0"}
        own = {"message.timeout.ms": int(timeout * 1000), "partitioner": partitioner, "on_delivery": self._reports.note}
        self._producer = producer(settings, most_bytes, safe | own)

    def open(self) -> None:
        """Raises `SinkUnavailable` if no broker answers."""
        try:
            connect(self._producer, self._topic, self._timeout)
        except KafkaException as error:
            raise self._told(code_of(error)) from None

    def send(self, records: Iterable[Record]) -> None:
        try:
            send(self._producer, self._topic, records, self._timeout)
        except BufferError:
            raise SinkUnavailable(f"{self._who}: the brokers took nothing in {self._timeout:.0f} s") from None
        except KafkaException as error:
            raise self._told(code_of(error)) from None

    def flush(self) -> None:
        """Every record has been reported when this returns. Raises `SinkUnavailable`, `PublishBlocked`."""
        deadline = time.monotonic() + self._timeout
        while (waiting := self._producer.flush(1.0)) and time.monotonic() < deadline:
            pass
        if self._reports.refused is not None:
            raise self._told(self._reports.refused)
        if waiting:
            raise SinkUnavailable(f"{self._who}: {waiting} records had no answer in {self._timeout:.0f} s")

    def leave(self) -> None:
        """Give what is under way one chance."""
        self._producer.flush(5.0)

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)
        del self._producer

    def _told(self, code: KafkaError) -> Exception:
        text = f"{self._who}: sending: {code.name()}: {code.str()}"
        return refused(text, code) or SinkUnavailable(text)


@dataclass
class PlainSession:
    """No transaction: what was sent stays sent."""

    producer: PlainProducer
    claimed: bool = True

    def send(self, records: Records) -> None:
        self.producer.send(records)


class KafkaSentCommitter(SentCommitter):
    """The records, then what remembers them elsewhere, or nothing."""

    def __init__(self, sink: KafkaSink, elsewhere: OutsideCommitter) -> None:
        super().__init__(elsewhere, self._producing, self._acknowledge)
        self._sink = sink

    @contextmanager
    def _producing(self, epoch: SinkEpoch) -> Iterator[PlainSession]:
        with closing(self._sink.plain_producer()) as producer:
            producer.open()
            yield PlainSession(producer)

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Nothing is claimed here, so there is nothing to look at again: whoever publishes has just looked."""
        with self._producing(epoch) as session:
            yield session

    def _acknowledge(self, session: Session) -> None:
        assert isinstance(session, PlainSession)
        if self.guarantee is Guarantee.NONE:
            session.producer.leave()
        else:
            session.producer.flush()
