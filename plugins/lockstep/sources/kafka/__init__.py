"""Kafka topics as a source."""

from lockstep.sources.kafka._source import KafkaSource

__all__ = ["KafkaSource"]
