"""Rewinding to a savepoint restates what follows: with state from that state, also where staging has let go of it."""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lockstep.epoch import Epoch, RunKey
from lockstep.errors import BadRecords, PackFailed, RestateRefused, WalCorrupt
from lockstep.operations.restate import find_restatable, restate
from lockstep.operations.savepoint import export, find_after, put_back_state
from lockstep.operations.verify import verify
from lockstep.protocol.pack import Member, move_pack, require_all_moved
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import Launch
from lockstep.sinks import FileSink
from lockstep.sinks.files import files
from lockstep.wal.manifest import SealedState
from lockstep.wal.request import RESULT, read_request
from stack.postgres import PostgresServer
from tests.crash import state_world
from tests.crash.state_world import ROWS, StateWorld, add_up
from tests.crash.test_restated_state import RestatedState
from tests.crash.world import rows_in, rows_of_day, write_parquet
from tests.sinks.append.feed import Feed, OpenDays

WHY = "each number was counted twice"


@pytest.fixture
def states(ledger_server: PostgresServer, memory: Path) -> Iterator[RestatedState]:
    """Of two epochs the state is kept."""
    made = RestatedState(StateWorld.make(ledger_server.create_database(f"rewound_{uuid.uuid4().hex[:12]}"), memory))
    made.world = dataclasses.replace(made.world, pipeline=dataclasses.replace(made.world.pipeline, keep_state=2))
    yield made
    made.ledger.close()


def saved(states: RestatedState, epoch: int | None = None, name: str = "saved") -> str:
    runtime, folder = states.world.runtime(), str(states.world.folder / name)
    export(runtime, folder, epoch)
    runtime.ledger.close()
    return folder


def rewind(runtime: Runtime, folder: str, why: str, launch: Launch, jobs: int | None = None) -> list[Member]:
    """As `lockstep restate --savepoint` does."""
    following = find_after(runtime, folder)
    put_back_state(runtime, folder)
    return restate(runtime, following, why, launch, jobs)


def rewound(states: RestatedState, folder: str, why: str = WHY, launch: Launch = add_up) -> list[Member]:
    runtime = states.world.runtime()
    try:
        members = rewind(runtime, folder, why, launch)
        require_all_moved(members)
        return members
    finally:
        runtime.ledger.close()


@pytest.mark.fault("K13")
def test_what_follows_is_restated_from_a_state_that_staging_has_let_go_of(states: RestatedState) -> None:
    for _ in range(2):
        states.go_on()
    folder = saved(states)
    for _ in range(4):
        states.go_on(wrong=True)
    runtime = states.world.runtime()
    found = find_restatable(runtime, 3)
    [refused] = restate(runtime, found, WHY, add_up)
    assert isinstance(refused.error, RestateRefused) and "no longer kept whole" in str(refused.error)
    [member] = rewound(states, folder)
    assert member.epoch is not None and [one.id for one in states.standing] == [1, 2, member.epoch.id]
    states.require_true()
    [again] = rewound(states, folder)
    assert again.epoch is not None and again.epoch.id == member.epoch.id, "the same reason restates once"
    states.go_on()
    states.require_true()
    for number in range(1, member.epoch.id + 2):
        assert all(one.agrees for one in verify(runtime, states.ledger.epoch("adding", number))), number
    runtime.ledger.close()
    rewound(states, folder, "and once more")
    assert [one.id for one in states.standing] == [1, 2, states.standing[-1].id]
    states.require_true()


@pytest.mark.fault("K13")
def test_a_cleanup_that_stood_still_takes_nothing_away_that_is_counted_on(
    states: RestatedState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was put back has been let go of before, and whoever did so may not know yet that it is there again."""
    for _ in range(2):
        states.go_on()
    folder, runtime = saved(states), states.world.runtime()
    older = runtime.states().executions()
    with monkeypatch.context() as patched:
        patched.setattr(state_world, "_key", lambda value: value // ROWS % 2)  # whose totals were right
        for _ in range(3):
            states.go_on(wrong=True)
    needed = frozenset(
        runtime.states().path_of(name, file)
        for epoch in states.standing[-2:]
        for name, file in state_of(runtime, epoch).files()
    )
    rewound(states, folder)
    assert sum(runtime.states().release(one, needed) for one in older) > 0
    states.require_true()
    states.go_on()
    states.require_true()
    runtime.ledger.close()


def state_of(runtime: Runtime, epoch: Epoch) -> SealedState:
    state = runtime.staging.manifest(epoch.wal or "", epoch.manifest_hash or "").state
    assert state is not None
    return state


OTHER_HISTORIES: list[tuple[dict[str, object], str]] = [
    ({"deployment": "99999999-2222-4333-8444-555555555555"}, "of pipeline adding in deployment 9999"),
    ({"pipeline": "another"}, "of pipeline another in"),
    ({"epoch": 17}, "this ledger has no such epoch"),
    ({"manifest_hash": "0" * 64}, "adding epoch 1 is cleaned here, and has another manifest"),
    ({"positions": {"numbers": 20}}, "adding epoch 1 ended at other positions"),
]


@pytest.mark.fault("K13")
def test_a_savepoint_of_another_history_begins_a_new_pipeline_and_rewinds_none(
    states: RestatedState, subtests: pytest.Subtests
) -> None:
    states.go_on()
    folder = saved(states)
    states.go_on(wrong=True)
    file = Path(folder, "_savepoint.json")
    own = json.loads(file.read_text())
    for changes, told in OTHER_HISTORIES:
        file.write_text(json.dumps({**own, **changes}))
        said = f"is of another history: .*{told}.*`lockstep savepoint start <new"
        with subtests.test(told), pytest.raises(RestateRefused, match=said):
            rewound(states, folder)
    assert [one.id for one in states.standing] == [1, 2]


def test_an_epoch_that_was_replaced_since_is_of_another_history(states: RestatedState) -> None:
    states.go_on()
    first = saved(states, name="first")
    states.go_on(wrong=True)
    second = saved(states, name="second")
    states.go_on(wrong=True)
    rewound(states, first)
    with pytest.raises(RestateRefused, match="adding epoch 2 was replaced since, by epoch 4"):
        rewound(states, second, "otherwise")


def test_where_nothing_follows_there_is_nothing_to_rewind(states: RestatedState) -> None:
    states.go_on()
    with pytest.raises(RestateRefused, match="nothing follows adding epoch 1 that is decided"):
        rewound(states, saved(states))


@pytest.mark.fault("K13")
def test_a_damaged_savepoint_rewinds_nothing(states: RestatedState) -> None:
    states.go_on()
    folder = saved(states)
    for _ in range(4):
        states.go_on()
    damaged = next(Path(folder).rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(WalCorrupt, match="bytes found"):
        rewound(states, folder)
    file = Path(folder, "_savepoint.json")
    told = json.loads(file.read_text())
    told["versions"]["totals"]["files"] = []
    file.write_text(json.dumps(told))
    with pytest.raises(WalCorrupt, match="lacks files of the state totals"):
        rewound(states, folder)
    assert [one.id for one in states.standing] == [1, 2, 3, 4, 5]


def test_without_state_each_later_epoch_is_restated_by_itself(memory: Path, ledger_server: PostgresServer) -> None:
    sink = FileSink("out", output="numbers", path=str(memory / "out"))
    feed = Feed.of(ledger_server.create_database(f"rewound_{uuid.uuid4().hex[:12]}"), memory, [sink], {}, cursor=True)
    for run in range(4):
        feed.decide(run)
        feed.finish(run)
    folder = str(memory / "saved")
    with feed.runtime() as runtime:
        export(runtime, folder, 2)
        for _ in range(2):  # the same reason restates once
            members = rewind(runtime, folder, WHY, write_parquet)
            require_all_moved(members)
            assert sorted(one.epoch.id for one in members if one.epoch) == [5, 6]
        assert [runtime.ledger.epoch("numbers", one).state for one in (2, 3, 4)] == ["cleaned", "replaced", "replaced"]
    shown = rows_in(map(Path, files(str(memory / "out"))))
    assert shown == Counter(row for day in range(4) for row in rows_of_day(day))


def lacks_rows(request_uri: str, failing: int | None = None) -> None:
    """The staging job; that of day 2 reads nothing, that of day `failing` finds bad records."""
    folder = Path(request_uri.removeprefix("file://")).parent
    day = read_request(request_uri).sources["numbers"].end["day"]
    if day == failing:
        raise BadRecords(f"day {day} is not what it should be")
    write_parquet(request_uri)
    if day == 2:
        for part in (folder / "numbers").iterdir():
            pq.write_table(pq.read_table(part).slice(0, 0), part)
        told = json.loads((folder / RESULT).read_text())
        told["rows"]["numbers"] = told["sources"]["numbers"]["rows"] = 0
        (folder / RESULT).write_text(json.dumps(told))


@pytest.mark.fault("P1")
@pytest.mark.parametrize("sized", [True, False])
def test_neither_what_reads_nothing_nor_what_fails_ends_a_list_of_epochs(
    memory: Path, ledger_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, sized: bool
) -> None:
    """A pack that reads on goes on behind such an epoch where the source can size what it has."""
    sink = FileSink("out", output="numbers", path=str(memory / "out"))
    feed = Feed.of(ledger_server.create_database(f"rewound_{uuid.uuid4().hex[:12]}"), memory, [sink], {}, cursor=True)
    if sized:
        monkeypatch.setattr(OpenDays, "bytes_planned", lambda *_: 1, raising=False)
    folder, runs = str(memory / "saved"), [RunKey("feed", str(number)) for number in range(7)]
    with feed.runtime() as runtime:
        require_all_moved(moved := move_pack(runtime, runs[:5], lacks_rows, jobs=1))
        assert len(moved) == (5 if sized else 3)
        require_all_moved(move_pack(runtime, runs[5:], lacks_rows, jobs=1))
        export(runtime, folder, 1)
        last = 7 if sized else 5
        with pytest.raises(PackFailed, match=rf"1 of {last - 1} epochs .*BadRecords: day 3"):
            require_all_moved(rewind(runtime, folder, WHY, partial(lacks_rows, failing=3), jobs=1))
        require_all_moved(rewind(runtime, folder, WHY, lacks_rows, jobs=1))
        assert {runtime.ledger.epoch("numbers", one).state for one in range(2, last + 1)} == {"replaced"}
    shown = rows_in(map(Path, files(str(memory / "out"))))
    assert shown == Counter(row for day in range(last) if day != 2 for row in rows_of_day(day))
