"""Shards of a Kafka sink by task instances of their own: whatever becomes of one, every row shows up once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from stack.kafka import KafkaBroker
from tests.e2e.airflow_api import wait_for
from tests.e2e.conftest import TestedStack
from tests.e2e.groups import Row
from tests.e2e.world import World
from tests.sinks.kafka_admin import cluster_of
from tests.sinks.kafka_target import PARTITIONS, committed

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

TASK = "publish_shards.events"
SHARDS = [f"{TASK}[{number}]" for number in range(3)]


@pytest.fixture(scope="module")
def broker(stack: TestedStack, kafka_jars: None) -> Iterator[KafkaBroker]:
    with KafkaBroker(stack.home.root / "broker", port=stack.home.ports.kafka).for_a_while() as started:
        with cluster_of(started) as cluster:
            cluster.create_topic("sharded", PARTITIONS, {})
        yield started


def in_topic(broker: KafkaBroker, day: str) -> Counter[Row]:
    rows = [tuple(json.loads(one.value()).values()) for one in committed(broker, "sharded")]
    return Counter(row for row in rows if row[1] == day)


def held_instance(world: World, run_id: str) -> str:
    """The one that runs while the others are done."""
    world.wait_for_held_publisher()

    def unfinished() -> list[str]:
        states = world.api.states("sharded", run_id)
        return [name for name in SHARDS if states.get(name) != "success"]

    wait_for(lambda: len(unfinished()) == 1, "the other shards to be sent")
    [held] = unfinished()
    return held


def test_kill_9_of_one_shards_instance_is_retried_and_no_other(world: World, broker: KafkaBroker) -> None:
    landed = world.land("sharded", "2024-04-02")
    world.hold_publisher()
    run_id = world.trigger("sharded", "2024-04-02")
    held = held_instance(world, run_id)
    assert in_topic(broker, "2024-04-02") < landed, "two shards are there"
    assert world.state("sharded", "2024-04-02") == "committed"
    world.kill_task("sharded", run_id, held)
    world.release_publisher()
    world.require_success("sharded", run_id)
    tasks = world.api.tasks("sharded", run_id)
    for number, name in enumerate(SHARDS):
        assert tasks[name]["try_number"] == (2 if name == held else 1)
        assert tasks[name]["rendered_map_index"] == f"shard {number}"
    assert in_topic(broker, "2024-04-02") == landed
    assert world.state("sharded", "2024-04-02") == "cleaned"
    assert "events shows it (found)" in world.api.log("sharded", run_id, "publish.events")
    events = world.api.asset_events("sharded", run_id)
    assert len(events) == len({event["name"] for event in events}) == 1 + world.partitions
    assert all(event["extra"]["rows"] == {"orders": landed.total()} for event in events)

    world.api.clear("sharded", run_id, TASK, downstream=False, index=1)
    world.require_success("sharded", run_id)
    assert in_topic(broker, "2024-04-02") == landed


def test_recovery_finishes_all_shards_while_an_instance_still_sends_one(world: World, broker: KafkaBroker) -> None:
    landed = world.land("sharded", "2024-04-03")
    world.hold_publisher()
    run_id = world.trigger("sharded", "2024-04-03")
    held_instance(world, run_id)
    world.recover()
    assert world.state("sharded", "2024-04-03") == "cleaned"
    assert in_topic(broker, "2024-04-03") == landed
    world.release_publisher()
    world.require_success("sharded", run_id)
    assert in_topic(broker, "2024-04-03") == landed


def test_a_shard_that_is_marked_a_success_is_sent_by_publish(world: World, broker: KafkaBroker) -> None:
    landed = world.land("sharded", "2024-04-04")
    world.hold_publisher()
    run_id = world.trigger("sharded", "2024-04-04")
    held = held_instance(world, run_id)
    world.api.mark_task("sharded", run_id, TASK, "success", index=SHARDS.index(held))
    world.release_publisher()
    world.require_success("sharded", run_id)
    assert "events shows it (" in world.api.log("sharded", run_id, "publish.events")
    assert in_topic(broker, "2024-04-04") == landed
    assert world.state("sharded", "2024-04-04") == "cleaned"
