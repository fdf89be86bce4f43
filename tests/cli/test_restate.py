"""`lockstep restate`: what it would do, and what it does."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import EpochBusy, SourceChanged, StageFailed
from lockstep.operations.restate import find_restatable
from lockstep.operations.restate import restate as restate_epochs
from lockstep.remedies import COMMAND
from lockstep.roles.begin import begin
from tests.cases import cases
from tests.cli.conftest import Lockstep
from tests.crash.world import OpenNumbers, Rows, World, interval_of, rows_of_day, write_others, write_parquet

SAID = ("--definition", "numbers_definition:pipeline", "--reason", "the label was wrong")


@pytest.fixture(autouse=True)
def definition(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline, where `--definition` finds it, staged without Spark."""
    import sys
    from types import ModuleType

    module = ModuleType("numbers_definition")
    module.pipeline = world.pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numbers_definition", module)
    monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: write_parquet)


def publish_wrong(world: World) -> int:
    day = next(world.days)
    for task in world.tasks():
        world.run_task(task, RunKey("cli", f"wrong {day}"), day, write_others)
    return day


def right(day: int) -> Rows:
    return Counter(rows_of_day(day))


def bounds(first: int, last: int) -> tuple[str, ...]:
    return "--from", interval_of(first).start.isoformat(), "--to", interval_of(last).end.isoformat()


def told(lockstep: Lockstep, *arguments: Any) -> Any:
    result = lockstep("restate", "numbers", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_plan_says_who_takes_part_and_how_long_it_took_and_changes_nothing(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = publish_wrong(world)
    [found] = told(lockstep, "--epoch", 1, "--plan", *SAID)
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

    monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: fails_on_the_second)
    half = lockstep("restate", "numbers", *bounds(days[0], days[2]), *SAID, "--spark", "none", "--jobs", 1)
    assert half.exit_code != 0
    assert [world.shown_in_warehouse(day) == right(day) for day in days] == [True, False, True]
    monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: write_parquet)
    done = told(lockstep, *bounds(days[0], days[2]), *SAID, "--spark", "none", "--jobs", 1)
    assert [one["already_published"] for one in done] == [True, False, True]
    for day in days:
        world.require_exactly_once(day)
    again = told(lockstep, *bounds(days[0], days[2]), *SAID, "--spark", "none")
    assert [one["epoch"] for one in again] == [one["epoch"] for one in done]
    assert all(one["already_published"] for one in again)
    world.require_tidy()


def test_a_request_with_a_name_of_its_own_restates_for_the_same_reason_once_more(
    world: World, lockstep: Lockstep
) -> None:
    day, lives = publish_wrong(world), Counter[int]()
    for name in ((), ("--request", "2026-11"), (), ("--request", "2026-11"), ("--request", "2026-12")):
        [found] = told(lockstep, *bounds(day, day), *SAID, "--spark", "none", *name)
        lives[found["epoch"]] += 1
        assert found["already_published"] == (lives[found["epoch"]] > 1)
    assert lives == {2: 2, 3: 2, 4: 1}
    world.require_exactly_once(day)
    again = lockstep("restate", "numbers", *bounds(day, day), *SAID, "--spark", "none")
    assert "restated before: nothing was read" in again.output and "--request" in again.output
    assert world._looking.epoch("numbers", 3).generation.because == "the label was wrong (request 2026-11)"  # type: ignore[union-attr]


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

        said = ("--epoch", epoch, *SAID, "--spark", "none", *(("--request", named) if named else ()))
        monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_, twice=given_twice: twice)
        [found] = told(lockstep, *said)
        assert (found["epoch"], found["already_published"]) == (2 + epoch, False)
        error = errors.pop()
        assert errors == [] and isinstance(error, EpochBusy) and "is held by run numbers__" in str(error)
        world.require_exactly_once(days[epoch - 1])
        monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: write_parquet)
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

    monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: overtaken)
    assert lockstep("restate", "numbers", "--epoch", 1, *SAID, "--spark", "none").exit_code != 0
    assert [world._looking.epoch("numbers", 2).attempt] == attempts


def test_a_command_whose_process_died_goes_on_once_its_lease_has_run_out(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = publish_wrong(world)

    def dies(request_uri: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: dies)
    assert lockstep("restate", "numbers", "--epoch", 1, *SAID, "--spark", "none").exit_code != 0
    monkeypatch.setattr("lockstep.cli._restate_command.in_process", lambda *_: write_parquet)
    early = lockstep("restate", "numbers", "--epoch", 1, *SAID, "--spark", "none")
    assert early.exit_code == 75 and "is held by run" in early.output
    world.expire_leases()
    [found] = told(lockstep, "--epoch", 1, *SAID, "--spark", "none")
    assert found["epoch"] == 2
    world.require_exactly_once(day)
    world.require_tidy()


def test_frozen_input_is_another_restatement(world: World, lockstep: Lockstep) -> None:
    day = publish_wrong(world)
    arguments = ("--epoch", 1, *SAID, "--spark", "none")
    for reads, number in ((("--input", "frozen"), 2), ((), 3), (("--input", "fresh"), 3), (("--input", "frozen"), 2)):
        [found] = told(lockstep, *arguments, *reads)
        assert found["epoch"] == number, "each is done once"
    world.require_exactly_once(day)


@cases(
    "arguments, code, said",
    [
        ((), 2, "either --epoch"),
        (("--epoch", 1, "--from", "2013-01-01T00:00:00Z"), 2, "either --epoch"),
        (("--from", "2013-01-01T00:00:00Z"), 2, "go together"),
        (("--from", "yesterday", "--to", "2013-01-02T00:00:00Z"), 2, "no ISO 8601"),
        (("--from", "2013-01-01T00:00:00", "--to", "2013-01-02T00:00:00"), 1, "no time zone"),
        (("--from", "2013-01-01T12:00:00Z", "--to", "2013-01-03T00:00:00Z"), 1, "only a part of"),
        (("--from", "2014-01-01T00:00:00Z", "--to", "2014-01-02T00:00:00Z"), 1, "shows nothing of"),
        (("--epoch", 7), 1, "no epoch 7"),
        (("--epoch", 1, "--reason", " "), 1, "say why"),
        (("--epoch", 1, "--reason", "why", "--request", " "), 1, "a request's name"),
        (("--epoch", 1), 1, "say where Spark is"),
    ],
)
def test_what_can_not_be_meant_is_refused(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch, arguments: tuple[Any, ...], code: int, said: str
) -> None:
    monkeypatch.delenv("LOCKSTEP_SPARK", raising=False)
    if world._looking.last_epoch("numbers") is None:
        publish_wrong(world)
    spark = ("--spark", "none") if "--reason" in arguments else ()
    result = lockstep("restate", "numbers", *SAID, *arguments, *spark)
    assert result.exit_code == code, result.output
    assert said in result.output.replace("\n", " ")
    assert world._looking.last_epoch("numbers").id == 1  # type: ignore[union-attr]
