"""`lockstep restate` and `lockstep restore`: what they would do, and what they do."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import EpochBusy, SourceChanged, StageFailed
from lockstep.observability.suggestions import COMMAND
from lockstep.operations.restate import find_restatable
from lockstep.operations.restate import restate as restate_epochs
from lockstep.protocol.begin import begin
from tests.cli.conftest import Lockstep
from tests.crash.restating_world import wrong_rows
from tests.crash.test_kept_wals import pass_time
from tests.crash.world import OpenNumbers, Rows, World, interval_of, rows_of_day, write_others, write_parquet

SAID = ("--definition", "numbers_definition:pipeline", "--reason", "the label was wrong")


@pytest.fixture(autouse=True)
def definition(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Where `--definition` finds the pipeline, which is staged without Spark."""
    module: Any = ModuleType("numbers_definition")
    module.pipeline = world.pipeline
    monkeypatch.setitem(sys.modules, "numbers_definition", module)
    monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: write_parquet)
    return module


def publish_wrong(world: World) -> int:
    day = next(world.days)
    for task in world.tasks():
        world.run_task(task, RunKey("cli", f"wrong {day}"), day, write_others)
    return day


def right(day: int) -> Rows:
    return Counter(rows_of_day(day))


def bounds(first: int, last: int) -> tuple[str, ...]:
    return "--from", interval_of(first).start.isoformat(), "--to", interval_of(last).end.isoformat()


def told(lockstep: Lockstep, *arguments: Any, command: str = "restate", code: int = 0) -> Any:
    result = lockstep(command, "numbers", *arguments, *SAID, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_plan_says_who_takes_part_and_how_long_it_took_and_changes_nothing(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = publish_wrong(world)
    [found] = told(lockstep, "--epoch", 1, "--plan")
    assert (found["epoch"], found["state"], found["rows"], found["refusals"]) == (1, "cleaned", {"numbers": 20}, {})
    assert found["took"] > 0
    assert "every sink can replace it" in lockstep("restate", "numbers", "--epoch", 1, "--plan", *SAID).output
    assert world.shown_in_warehouse(day) != right(day)

    def gone(*_: object) -> None:
        raise SourceChanged("numbers.csv is gone")

    with monkeypatch.context() as patched:
        patched.setattr(OpenNumbers, "check", gone)
        assert lockstep("restate", "numbers", "--epoch", 1, "--plan", *SAID).exit_code == 0
        refused = lockstep("restate", "numbers", "--epoch", 1, "--plan", "--input", "frozen", *SAID)
    assert refused.exit_code == 1
    assert "numbers.csv is gone" in refused.output, "a plan from what was read asks the sources"
    world.execute(world.warehouse_dsn, "DELETE FROM public.lockstep_marker")
    refused = lockstep("restate", "numbers", "--epoch", 1, "--plan", *SAID)
    assert refused.exit_code == 1
    assert "sink warehouse holds no marker of it" in refused.output


def test_days_are_restated_one_by_one_and_a_half_done_list_goes_on(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [publish_wrong(world) for _ in range(3)]

    def fails_on_the_second(request_uri: str) -> None:
        if "epoch=5" in request_uri:
            raise StageFailed("a test")
        write_parquet(request_uri)

    monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: fails_on_the_second)
    half = lockstep("restate", "numbers", *bounds(days[0], days[2]), *SAID, "--spark", "none", "--jobs", 1)
    assert half.exit_code != 0
    assert [world.shown_in_warehouse(day) == right(day) for day in days] == [True, False, True]
    monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: write_parquet)
    done = told(lockstep, *bounds(days[0], days[2]), "--spark", "none", "--jobs", 1)
    assert [one["already_published"] for one in done] == [True, False, True]
    for day in days:
        world.require_exactly_once(day)
    again = told(lockstep, *bounds(days[0], days[2]), "--spark", "none")
    assert [one["epoch"] for one in again] == [one["epoch"] for one in done]
    assert all(one["already_published"] for one in again)
    world.require_tidy()


def test_a_request_with_a_name_of_its_own_restates_for_the_same_reason_once_more(
    world: World, lockstep: Lockstep
) -> None:
    day, lives = publish_wrong(world), Counter[int]()
    for name in ((), ("--request", "2026-11"), (), ("--request", "2026-11"), ("--request", "2026-12")):
        [found] = told(lockstep, *bounds(day, day), "--spark", "none", *name)
        lives[found["epoch"]] += 1
        assert found["already_published"] == (lives[found["epoch"]] > 1)
    assert lives == {2: 2, 3: 2, 4: 1}
    world.require_exactly_once(day)
    again = lockstep("restate", "numbers", *bounds(day, day), *SAID, "--spark", "none")
    assert "restated before: nothing was read" in again.output and "--request" in again.output
    assert world._looking.epoch("numbers", 3).generation.reason == "the label was wrong (request 2026-11)"  # type: ignore[union-attr]


def test_a_command_that_is_given_twice_at_a_time_takes_nothing_from_the_first_one(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its lease, nor, as it ends in vain, its attempt."""
    days = [publish_wrong(world) for _ in range(2)]
    errors = list[Exception | None]()
    for epoch, named in ((1, None), (2, "2026-11")):

        def given_twice(request_uri: str, epoch: int = epoch, named: str | None = named) -> None:
            runtime = world.runtime()
            found = find_restatable(runtime, epoch)
            members = restate_epochs(runtime, found, "the label was wrong", write_parquet, 1, named)
            errors.extend(member.error for member in members)
            write_parquet(request_uri)

        said = ("--epoch", epoch, "--spark", "none", *(("--request", named) if named else ()))
        monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_, twice=given_twice: twice)
        [found] = told(lockstep, *said)
        assert (found["epoch"], found["already_published"]) == (2 + epoch, False)
        error = errors.pop()
        assert errors == [] and isinstance(error, EpochBusy) and "is held by run numbers__" in str(error)
        world.require_exactly_once(days[epoch - 1])
        monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: write_parquet)
        [again] = told(lockstep, *said)
        assert (again["epoch"], again["already_published"]) == (2 + epoch, True)


def test_a_command_that_was_overtaken_leaves_the_attempt_of_who_overtook_it(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, attempts = publish_wrong(world), list[int]()

    def overtaken(request_uri: str) -> None:
        world.expire_leases()
        [(run,)] = world.execute(world.ledger_dsn, "SELECT owner_run FROM lockstep.epoch WHERE id = 2")
        second = RunKey(COMMAND, run, restate="the label was wrong")
        attempts.append(begin(world.runtime(), second, interval_of(day)).attempt)
        write_parquet(request_uri)

    monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: overtaken)
    assert lockstep("restate", "numbers", "--epoch", 1, *SAID, "--spark", "none").exit_code != 0
    assert [world._looking.epoch("numbers", 2).attempt] == attempts


def test_a_command_whose_process_died_goes_on_once_its_lease_has_run_out(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = publish_wrong(world)

    def dies(request_uri: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: dies)
    assert lockstep("restate", "numbers", "--epoch", 1, *SAID, "--spark", "none").exit_code != 0
    monkeypatch.setattr("lockstep.cli._range_commands.in_process", lambda *_: write_parquet)
    early = lockstep("restate", "numbers", "--epoch", 1, *SAID, "--spark", "none")
    assert early.exit_code == 75 and "is held by run" in early.output
    world.expire_leases()
    [found] = told(lockstep, "--epoch", 1, "--spark", "none")
    assert found["epoch"] == 2
    world.require_exactly_once(day)
    world.require_tidy()


REFUSED: list[tuple[tuple[Any, ...], int, str]] = [
    ((), 2, "either --epoch"),
    (("--epoch", 1, "--from", "2013-01-01T00:00:00Z"), 2, "either --epoch"),
    (("--from", "2013-01-01T00:00:00Z"), 2, "go together"),
    (("--from", "yesterday", "--to", "2013-01-02T00:00:00Z"), 2, "not an ISO 8601"),
    (("--from", "2013-01-01T00:00:00", "--to", "2013-01-02T00:00:00"), 1, "no time zone"),
    (("--from", "2013-01-01T12:00:00Z", "--to", "2013-01-03T00:00:00Z"), 1, "only a part of"),
    (("--from", "2014-01-01T00:00:00Z", "--to", "2014-01-02T00:00:00Z"), 1, "shows nothing of"),
    (("--epoch", 7), 1, "no epoch 7"),
    (("--epoch", 1, "--reason", " ", "--spark", "none"), 2, "one line of printable text"),
    (("--epoch", 1, "--request", " ", "--spark", "none"), 1, "a request's name"),
    (("--epoch", 1), 1, "no Spark is given"),
]


def test_what_can_not_be_meant_is_refused(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.delenv("LOCKSTEP_SPARK", raising=False)
    publish_wrong(world)
    for arguments, code, said in REFUSED:
        with subtests.test(arguments=arguments):
            result = lockstep("restate", "numbers", *SAID, *arguments)
            assert result.exit_code == code and said in result.output.replace("\n", " "), result.output
            assert last_epoch(world) == 1


# --- lockstep restore ---


def last_epoch(world: World) -> int:
    found = world._looking.last_epoch("numbers")
    assert found is not None
    return found.id


@pytest.fixture
def kept(world: World, definition: Any) -> World:
    """Whose day 0 showed epoch 1 first, and shows epoch 2; WALs are kept."""
    kept = replace(world, pipeline=replace(world.pipeline, keep_wal=timedelta(days=1)))
    definition.pipeline = kept.pipeline
    publish_wrong(kept)
    kept.run(RunKey("cli", "second", restate="a bug"), 0)
    return kept


def test_a_plan_says_what_would_be_shown_in_place_of_what_and_changes_nothing(kept: World, lockstep: Lockstep) -> None:
    found = told(lockstep, "--epoch", 1, "--plan", command="restore")
    assert (found["epoch"], found["generation"], found["shown"], found["refusals"]) == (1, 0, 2, {})
    assert found["rows"] == found["shown_rows"] == {"numbers": 20}
    assert found["kept_since"] is not None
    assert found["other_columns"] == []
    assert told(lockstep, "--epoch", 2, "--generation", 0, "--plan", command="restore") == found
    said = lockstep("restore", "numbers", "--epoch", 1, "--plan", *SAID).output
    assert "epoch 1 (generation 0): numbers 20; its WAL is kept since" in said
    assert "in place of epoch 2, which is shown: numbers 20" in said
    assert last_epoch(kept) == 2
    kept.execute(kept.warehouse_dsn, "DELETE FROM public.lockstep_marker")
    refused = told(lockstep, "--epoch", 1, "--plan", code=1, command="restore")["refusals"]
    assert "sink warehouse holds no marker of it" in refused["warehouse"]


def test_rows_come_back_and_the_same_command_again_finds_that_all_is_done(kept: World, lockstep: Lockstep) -> None:
    [done] = told(lockstep, "--epoch", 1, command="restore")
    assert (done["epoch"], done["state"], done["already_published"]) == (3, "cleaned", False)
    assert [kept.shown_in_warehouse(0), kept.shown_in_files(0), kept.bare_files(0)] == [wrong_rows(0)] * 3
    [again] = told(lockstep, "--epoch", 1, command="restore")
    assert (again["epoch"], again["already_published"]) == (3, True)
    assert told(lockstep, "--epoch", 2, command="restore")[0]["epoch"] == 4
    assert kept.shown_in_warehouse(0) == Counter(rows_of_day(0))
    since = lockstep("restore", "numbers", "--epoch", 1, *SAID)
    assert since.exit_code == 1
    assert "it was replaced since: give another reason" in since.stderr.replace("\n", " ")
    history = lockstep("status", "numbers", "--epoch", 3).output
    assert "restores the rows of epoch 1: the label was wrong" in history.replace("\n", " ")


def test_what_can_not_be_meant_or_is_not_kept_any_more_is_refused(kept: World, lockstep: Lockstep) -> None:
    refusals: list[tuple[tuple[Any, ...], str]] = [
        (("--epoch", 2), "it is the current generation"),
        (("--epoch", 1, "--generation", 1), "it is the current generation"),
        (("--epoch", 1, "--generation", 7), "has no generation 7, it has 0 (epoch 1), 1 (epoch 2)"),
        (("--epoch", 7), "no epoch 7"),
    ]
    for arguments, said in refusals:
        result = lockstep("restore", "numbers", *SAID, *arguments)
        assert result.exit_code == 1 and said in result.stderr.replace("\n", " "), result.output
        assert last_epoch(kept) == 2
    pass_time(kept, 1, timedelta(days=2))
    assert kept.recover().problems == []
    assert "isn't kept" in told(lockstep, "--epoch", 1, "--plan", code=1, command="restore")["refusals"][""]
    result = lockstep("restore", "numbers", "--epoch", 1, *SAID)
    assert result.exit_code == 1
    assert "lockstep wal list numbers" in result.output
    assert last_epoch(kept) == 2
