"""Roles call hooks in the order that docs/protocol.md gives, and a failing hook ends the role."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import StagingUnavailable
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.hooks import Feature
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from tests.crash.world import World, interval_of, write_parquet


class Recorder(Feature):
    """Keeps the names of the hooks that were called, without repetitions."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name in vars(Feature) and self.called[-1:] != [name]:
            self.called.append(name)
        return super().__getattribute__(name)

    def take(self) -> list[str]:
        taken, self.called = self.called, []
        return taken


def test_each_role_calls_its_hooks_in_order(world: World) -> None:
    recorder, day = Recorder(), next(world.days)
    runtime = world.runtime().with_feature(recorder)
    run, interval = RunKey("hooks", f"{day}"), interval_of(day)
    begin(runtime, run, interval)
    assert recorder.take() == [
        *("requested", "selecting", "opening", "planning", "preflight", "folders_swept", "rolled_back", "begun")
    ]
    stage(runtime, run, write_parquet)
    assert recorder.take() == ["staging"]
    for sink in world.pipeline.sinks:
        prepare(runtime, run, sink.name)
        assert recorder.take() == ["preparing", "describing", "writing"]
    commit(runtime, run)
    assert recorder.take() == []
    for sink in world.pipeline.sinks:
        publish(runtime, run, sink.name)
        assert set(recorder.take()) <= {"describing"}
    cleanup(runtime, run)
    assert recorder.take() == ["cleaning", "archived", "wal_to_keep", "wal_deleted", "cleaned"]
    runtime.ledger.close()
    world.require_exactly_once(day)


class Failing(Feature):
    def __init__(self, hook: str) -> None:
        def fail(*_: object, **__: object) -> None:
            raise StagingUnavailable("the feature can't go on")

        setattr(self, hook, fail)


@pytest.mark.parametrize("hook", ["begun", "staging", "preparing", "cleaning", "wal_deleted"])
def test_a_role_ends_where_a_hook_fails_and_is_done_by_its_retry(world: World, hook: str) -> None:
    day = next(world.days)
    run, runtime = RunKey("hooks", f"{day}"), world.runtime()
    with pytest.raises(StagingUnavailable):
        _move(runtime.with_feature(Failing(hook)), world, run, day)
    _move(runtime, world, run, day)
    runtime.ledger.close()
    world.require_exactly_once(day)


def _move(runtime: Runtime, world: World, run: RunKey, day: int) -> None:
    begin(runtime, run, interval_of(day))
    stage(runtime, run, write_parquet)
    for sink in world.pipeline.sinks:
        prepare(runtime, run, sink.name)
    commit(runtime, run)
    for sink in world.pipeline.sinks:
        publish(runtime, run, sink.name)
    cleanup(runtime, run)
