"""Offsets of consumer groups, as lag monitors know them. Nothing is ever read from where they stand."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from lockstep.kafka.cluster import SECONDS
from lockstep.kafka.connection import Asker, Settings, client


def commit_offsets(settings: Settings, who: Asker, group: str, ends: Mapping[str, Mapping[int, int]]) -> None:
    """Set the group's offsets. Raises the asker's errors, also while the group has members of its own."""
    places = [TopicPartition(topic, n, end) for topic, offsets in ends.items() for n, end in offsets.items()]
    admin = AdminClient(client(settings))  # by name: a client that nobody knows any more never answers
    with who.naming(f"committing offsets of group {group}"):
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])[group].result(SECONDS)
