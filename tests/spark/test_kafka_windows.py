"""The shipped example on a real broker and a real Spark: windows that grow over epochs are those of one batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer

from lockstep import run_epoch
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker, settings_of
from lockstep.ledger import Ledger
from spark_apps.kafka_windows import pipeline
from stack.flight_feed import ORIGINS, Told, events
from stack.kafka import KafkaBroker
from stack.landing import FIRST_DAY
from stack.window_proof import checks

DAYS, EPOCHS = 2, 5


def _send(broker: KafkaBroker, told: list[Told]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for one in told:
        producer.produce("departures", one.value, one.origin, ORIGINS.index(one.origin))
    producer.flush()


def test_hours_that_are_told_about_out_of_order_and_late_are_those_of_a_batch(
    spark_connect: str, kafka_broker: KafkaBroker, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
    cluster = Cluster(settings_of(kafka_broker.bootstrap, "test"), Asker("test"))
    for topic in ("departures", "hourly_departures"):
        cluster.create_topic(topic, len(ORIGINS), {})
    cluster.close()
    told = events(DAYS)
    for number in range(EPOCHS):
        _send(kafka_broker, told[len(told) * number // EPOCHS : len(told) * (number + 1) // EPOCHS])
        run_epoch(
            pipeline,
            spark=spark_connect,
            ledger=ledger_dsn,
            staging=str(tmp_path / "staging"),
            connections={"warehouse": warehouse_dsn, "kafka": kafka_broker.bootstrap},
        )
    ledger = Ledger(ledger_dsn)
    epochs = ledger.sealed_epochs(pipeline.name, 1)
    ledger.close()
    until = datetime.combine(FIRST_DAY + timedelta(days=DAYS), datetime.min.time(), UTC)
    topics = ("departures", "hourly_departures")
    found = checks(epochs, warehouse_dsn, kafka_broker.bootstrap, topics, len(told), until)
    assert [check for check in found if not check.agrees] == []
    counts = [epoch.summary["balances"]["windows"] for epoch in epochs]
    assert len(epochs) == EPOCHS and all(one["in"] for one in counts)
    assert sum(one["late"] for one in counts) and sum(one["corrected"] for one in counts)
