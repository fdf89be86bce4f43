"""Kafka as a target: `KafkaSink`."""

from lockstep.sinks.kafka.sink import KafkaSink

__all__ = ["KafkaSink"]
