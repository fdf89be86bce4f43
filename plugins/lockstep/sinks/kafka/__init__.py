"""Kafka as a target: `KafkaSink`."""

from lockstep.sinks.kafka._sink import KafkaSink

__all__ = ["KafkaSink"]
