"""One shard of an epoch in one Kafka transaction: init, then read the marker, then send, the marker last.

The order is the point. `init_transactions` ends whatever an older process has open under this transactional id and
fences it for good; a marker read before that could be committed right after it was looked for. Stable ids fence,
random ones do not (KIP-98). The marker comes last, as it makes others wait who look for theirs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException

from lockstep.errors import PublishBlocked, PublishBusy, SinkUnavailable
from lockstep.kafka.connection import Settings, code_of, connect
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka.records import NO_TIME, Record
from lockstep.sinks.kafka.sending import producer, refused, send

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def transactional_id(owner: SinkName, epoch: SinkEpoch, shard: int) -> str:
    """Stable per (deployment, pipeline, sink, shard). With intervals by epoch, or parallel ones fence each other."""
    whose = hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:24]
    one = f"-{epoch.id}" if epoch.interval is not None else ""
    return f"lockstep-{whose}{one}-{shard}"


class ShardTransaction:
    """A transactional producer. Errors after `open` are `PublishBusy`, `PublishBlocked` or `SinkUnavailable`."""

    def __init__(
        self,
        settings: Settings,
        who: str,
        id: str,
        topic: str,
        *,
        timeout: float,
        partitioner: str,
        most_bytes: int,
        longer: str,
    ) -> None:
        """`timeout`: seconds after which the broker gives the transaction up. `most_bytes`: the topic's, of a batch.
        `longer`: how a person says another timeout."""
        self._who, self._topic, self._timeout, self._longer = who, topic, timeout, longer
        self._began: float | None = None
        self.sent = 0  #: records, the marker not among them
        milliseconds = int(timeout * 1000)
        own = {"transactional.id": id, "transaction.timeout.ms": milliseconds, "message.timeout.ms": milliseconds}
        self._producer = producer(settings, most_bytes, {"partitioner": partitioner, **own})

    @property
    def claimed(self) -> bool:
        return self._began is not None

    def open(self) -> None:
        """Fence every older process of this id, and end what it had open."""
        self._do("finding a broker", lambda: connect(self._producer, self._topic, self._timeout))
        self._do("opening its transactions", lambda: self._producer.init_transactions(self._timeout))

    def begin(self) -> None:
        self._do("beginning a transaction", self._producer.begin_transaction)
        self._began = time.monotonic()

    def send(self, records: Iterable[Record]) -> None:
        """Hand records over; waits while too much is under way."""
        self.sent += self._give(records, self._topic)

    def _give(self, records: Iterable[Record], topic: str) -> int:
        try:
            return send(self._producer, topic, records, self._timeout)
        except BufferError:
            raise self._late(f"{self._who}: sending: the brokers took nothing more") from None
        except KafkaException as error:
            raise self._told("sending", error) from None

    def send_marker(self, topic: str, key: bytes, marker: bytes, partition: int) -> None:
        self._give([(key, marker, partition, NO_TIME, None)], topic)

    def commit(self) -> None:
        """Durable, and every record of it, when this returns.

        Whatever stands in the way, the outcome is found by the marker when the epoch is published again.
        """
        self._do("committing", lambda: self._producer.commit_transaction(self._timeout))

    def close(self) -> None:
        """End without an outcome: what is open is aborted here, or by the next process that opens this id."""
        with suppress(KafkaException):
            if self.claimed:
                self._producer.abort_transaction(5)
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(1)
        del self._producer

    def _do(self, doing: str, step: Callable[[], object]) -> None:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                step()
                return
            except KafkaException as error:
                if not code_of(error).retriable() or time.monotonic() > deadline:
                    raise self._told(doing, error) from None

    def _told(self, doing: str, error: KafkaException) -> Exception:
        code = code_of(error)
        text = f"{self._who}: {doing}: {code.name()}: {code.str()}"
        if code.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return PublishBlocked(
                f"{text}: transaction_timeout={self._timeout:g} is more than the brokers' transaction.max.timeout.ms: "
                f"raise that, or say less: {self._longer}"
            )
        if blocked := refused(text, code):
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
        return self._began is not None and time.monotonic() - self._began >= self._timeout

    def _late(self, text: str) -> PublishBlocked:
        return PublishBlocked(
            f"{text}; the transaction outlived transaction_timeout={self._timeout:g} s, in which an epoch has to "
            f"be sent ({self.sent:,} records were handed over). Nothing of it is visible, it is sent again: deploy "
            f"a longer transaction_timeout, or {self._longer}"
        )
