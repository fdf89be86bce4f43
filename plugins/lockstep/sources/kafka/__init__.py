"""Kafka topics as a source."""

from lockstep.sources.kafka.source import KafkaSource

__all__ = ["KafkaSource"]
