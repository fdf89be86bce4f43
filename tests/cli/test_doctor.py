"""`lockstep doctor`: what an epoch would fail on is said before it does, with a command; what is well is left alone."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import RunKey
from lockstep.operations.doctor import Finding, Severity, Surroundings, examine
from lockstep.operations.replan import replan
from lockstep.sinks.files import FileSink
from lockstep.sources.base import OpenSource
from stack.postgres import PostgresServer
from tests.cli.conftest import Lockstep, point_to
from tests.crash.world import Numbers, World, make_world
from tests.worlds import two_databases

RUN = RunKey("cli", "run")
Amiss = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def amiss(lockstep: Lockstep) -> Amiss:
    """What `lockstep doctor` calls broken or warns of; its exit code has to say the same."""

    def look(*arguments: object) -> list[dict[str, Any]]:
        result = lockstep("doctor", *arguments, "--json")
        found = json.loads(result.stdout)
        broken = any(one["severity"] == "broken" for one in found)
        assert result.exit_code == (1 if broken else 0), result.output
        return [one for one in found if one["severity"] != "fine"]

    return look


@pytest.fixture(scope="module")
def shared(ledger_server: PostgresServer, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with two_databases(ledger_server, migrated) as databases:
        folder = tmp_path_factory.mktemp("moved")
        found = make_world(databases["ledger"], databases["warehouse"], folder, "two_phase")
        found.run(RUN, next(found.days))
        yield found


@pytest.fixture
def moved(shared: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Whose one epoch is moved, for tests that leave it so."""
    point_to(shared, monkeypatch)
    return shared


def test_where_all_is_well_every_check_says_so(moved: World, lockstep: Lockstep) -> None:
    result = lockstep("doctor")
    assert result.exit_code == 0, result.output
    lines = [line.split()[:2] for line in result.output.splitlines()]
    assert {check for _, check in lines} >= {"versions:", "staging:", "ledger:", "clock:", "epochs", "sinks"}
    assert {severity for severity, _ in lines} == {"fine"}


def test_it_changes_nothing_unless_it_is_asked_to(world: World, lockstep: Lockstep) -> None:
    world.run_until(RUN, next(world.days), "commit")
    world.run_until(RunKey("cli", "dead"), next(world.days), "stage")
    world.fall_silent()

    def everything() -> tuple[Any, ...]:
        tables = ("epoch", "participant", "transition", "run", "execution", "pipeline")
        rows = [world.execute(world.ledger_dsn, f"SELECT t::text FROM lockstep.{one} t ORDER BY 1") for one in tables]
        files = sorted(str(path) for path in (*world.staging_folder.rglob("*"), *(world.folder / "out").rglob("*")))
        return rows, files, world.prepared()

    before = everything()
    assert lockstep("doctor").exit_code == 1
    assert everything() == before


def test_a_decided_epoch_that_nobody_publishes_is_told_with_the_command_and_fixed(
    world: World, lockstep: Lockstep, amiss: Amiss
) -> None:
    day = next(world.days)
    world.run_until(RUN, day, "commit")
    world.fall_silent()
    world.execute(world.ledger_dsn, "UPDATE lockstep.participant SET changed_at = now() - interval '1 hour'")
    world.execute(world.ledger_dsn, "UPDATE lockstep.epoch SET changed_at = now() - interval '1 hour'")
    [stuck] = [one for one in amiss() if one["check"] == "epochs"]
    assert stuck["severity"] == "broken"
    assert stuck["command"] == "`lockstep recover numbers`"
    assert "fixed 1, checking again:" in lockstep("doctor", "--fix").output
    world.require_exactly_once(day)
    assert amiss() == []


@pytest.mark.fault("X1")
def test_what_holds_rows_of_a_source_back_is_told(
    moved: World, lockstep: Lockstep, amiss: Amiss, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenSource, "held_back_by", lambda *_: "the row with id 5: its at is NULL")
    for module in ("lockstep.protocol.runtime", "lockstep.cli._commands"):
        monkeypatch.setattr(f"{module}.planned_source", lambda *_: Numbers())
    [finding] = amiss()
    assert (finding["severity"], finding["about"]) == ("warning", moved.pipeline.name)
    assert "rows waited for the row with id 5: its at is NULL" in finding["says"]
    assert "rows waited for the row with id 5: its at is NULL" in lockstep("status").output
    [told] = json.loads(lockstep("status", "--json").stdout)
    assert told["epochs"][0]["held_back"] == {"numbers": "the row with id 5: its at is NULL"}


def test_folders_of_dead_attempts_are_told_and_swept_and_those_of_strangers_told(
    moved: World, lockstep: Lockstep, amiss: Amiss
) -> None:
    [dead] = moved.execute(moved.ledger_dsn, "SELECT min(token) FROM lockstep.execution WHERE role = 'stage'")
    left = moved.staging_folder / _deployment(moved) / "numbers" / "epoch=1" / str(dead[0])
    left.mkdir(parents=True)
    [found] = amiss("numbers")
    assert found["says"] == "1 folders of dead attempts take up room in staging"
    assert lockstep("doctor", "--fix").exit_code == 0
    assert not left.exists()
    stranger = moved.staging_folder / _deployment(moved) / "stranger"
    stranger.mkdir()
    [found] = amiss()
    stranger.rmdir()
    assert (found["about"], found["severity"]) == ("stranger", "warning")


def test_what_nobody_said_is_told_by_its_variable_and_an_empty_ledger_is_migrated_when_asked(
    ledger_server: PostgresServer, tmp_path: Path, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LOCKSTEP_LEDGER", "LOCKSTEP_STAGING", "LOCKSTEP_SPARK"):
        monkeypatch.delenv(variable, raising=False)
    said = lockstep("doctor").output
    assert "set LOCKSTEP_LEDGER" in said and "set LOCKSTEP_STAGING" in said
    arguments = ["doctor", "--ledger", ledger_server.create_database("doctor_empty"), "--staging", tmp_path]
    told = lockstep(*arguments)
    assert told.exit_code == 1
    assert "the ledger isn't there yet" in told.output and "→ lockstep migrate" in told.output
    assert lockstep(*arguments, "--fix").exit_code == 0


def test_a_ledger_of_another_migration_or_older_than_its_sinks_and_a_staging_that_is_gone_are_left_so(
    world: World, lockstep: Lockstep, amiss: Amiss, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run(RUN, next(world.days))
    migrated = list[str]()
    with monkeypatch.context() as patch:
        patch.setattr("lockstep.ledger.administration.migrations", lambda: ((1, "schema", ""), (2, "a newer one", "")))
        patch.setattr("lockstep.operations.doctor.migrate", migrated.append)
        result = lockstep("doctor", "--fix")
    assert result.exit_code == 1 and "→ lockstep migrate" in result.output
    assert migrated == [] and "mended" not in result.output
    world.execute(world.ledger_dsn, "SET session_replication_role = replica; DELETE FROM lockstep.epoch")
    sinks = {one["about"]: one["says"] for one in amiss() if one["check"] == "sinks"}
    assert sinks.keys() == {"numbers/files", "numbers/warehouse"}
    assert all("the ledger is older than its sinks" in says for says in sinks.values())
    shutil.rmtree(world.staging_folder)
    [found] = [one for one in amiss() if one["check"] == "staging"]
    assert found["severity"] == "broken" and not world.staging_folder.exists(), "it isn't made anew"


def test_a_staging_that_makes_a_file_twice_is_refused(
    moved: World, amiss: Amiss, monkeypatch: pytest.MonkeyPatch
) -> None:

    def overwrite(self: object, path: str, data: bytes) -> None:
        (moved.staging_folder / path).write_bytes(data)

    monkeypatch.setattr("lockstep.wal.storages.LocalStorage.create", overwrite)
    [found] = amiss()
    assert "allows creating a file twice" in found["says"]
    assert list(moved.staging_folder.glob("_tried*")) == []


def test_a_connection_that_nobody_set_and_a_server_that_is_too_old_are_named(
    moved: World, amiss: Amiss, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCKSTEP_WAREHOUSE")
    [found] = amiss()
    assert (found["check"], found["about"]) == ("sinks", "numbers/warehouse")
    assert "LOCKSTEP_WAREHOUSE" in found["says"]
    monkeypatch.setattr("lockstep.connections.postgres.connection.OLDEST", 99)
    [found] = [one for one in amiss() if one["check"] == "ledger"]
    assert found["severity"] == "broken" and "99 or newer is needed; older ones have no multiranges" in found["says"]


@pytest.fixture
def nobody(moved: World) -> Iterator[str]:
    """A role without any right; the ledger's DSN with its login has its name in it."""
    role = f"{moved.ledger_dsn.rpartition('/')[2]}_nobody"
    moved.execute(moved.ledger_dsn, f"CREATE ROLE {role} LOGIN PASSWORD 'nothing'")
    yield role
    moved.execute(moved.ledger_dsn, f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_role_that_may_read_nothing_or_not_write_everything_it_has_to_is_told_so(
    moved: World, amiss: Amiss, nobody: str
) -> None:
    world, dsn = moved, moved.ledger_dsn.replace("//postgres@", f"//{nobody}:nothing@")
    [found] = amiss("--ledger", dsn)
    assert (found["check"], found["severity"]) == ("rights", "broken")
    assert "may not read" in found["says"]
    on = f"ON ALL TABLES IN SCHEMA lockstep TO {nobody}"
    world.execute(world.ledger_dsn, f"GRANT USAGE ON SCHEMA lockstep TO {nobody}; GRANT SELECT, INSERT {on}")
    [found] = amiss("--ledger", dsn)
    assert (found["check"], found["severity"]) == ("rights", "warning")
    world.execute(world.ledger_dsn, f"GRANT UPDATE {on}; REVOKE UPDATE ON lockstep.transition FROM {nobody}")
    assert amiss("--ledger", dsn) == []
    world.execute(world.ledger_dsn, f"REVOKE UPDATE ON lockstep.participant FROM {nobody}")
    [found] = amiss("--ledger", dsn)
    assert found["check"] == "rights"


def test_a_sink_that_was_replaced_is_neither_claimed_anew_nor_called_broken(
    world: World, amiss: Amiss, lockstep: Lockstep
) -> None:
    world.run_until(RUN, next(world.days), "begin")
    moved = FileSink("files", output="numbers", path=str(world.folder / "elsewhere"), format="parquet")
    elsewhere = replace(world, pipeline=replace(world.pipeline, sinks=[world.pipeline.sinks[0], moved]))
    replan(elsewhere.runtime(), 1, "another folder")
    elsewhere.run(RunKey("cli", "again"), 0)
    shutil.rmtree(world.folder / "out")
    assert amiss() == []
    assert "another one has taken its place" in lockstep("doctor").output
    assert not (world.folder / "out").exists()


def test_a_definition_that_moved_on_since_an_epoch_was_planned_is_drift(world: World) -> None:
    world.run_until(RUN, next(world.days), "stage")
    moved = FileSink("files", output="numbers", path=str(world.folder / "elsewhere"), format="parquet")
    defined = replace(world.pipeline, sinks=[world.pipeline.sinks[0], moved])
    around = Surroundings(
        world.ledger_dsn, str(world.staging_folder), None, {"warehouse": world.warehouse_dsn}, lambda _: defined
    )
    [drift] = [one for one in examine(around) if one.check == "drift"]
    assert (drift.severity, drift.command) == (
        Severity.BROKEN,
        "`lockstep replan numbers 1 --reason 'planned anew'`",
    )
    assert "changed: files" in drift.says


def test_a_spark_that_does_not_answer_or_whose_address_cant_be_read_is_told_without_its_token(
    moved: World, amiss: Amiss
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert amiss("--spark", f"sc://127.0.0.1:{port}/;token=secret-word") == []
    [found] = amiss("--spark", f"sc://127.0.0.1:{port}/;token=secret-word")
    assert found["check"] == "spark"
    assert "secret-word" not in found["says"]
    for address in ("sc://127.0.0.1:15002;token=secret-word", "sc://[127.0.0.1/;token=secret-word"):
        [found] = amiss("--spark", address)
        assert found["check"] == "spark" and "expected sc://host:port/;token=…" in found["says"]
        assert "secret-word" not in found["says"]


def _deployment(world: World) -> str:
    return next(world.staging_folder.iterdir()).name


def test_packages_and_a_spark_of_another_version_than_was_tried_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[Finding]:
        found = examine(Surroundings(None, None, None, {}))
        return [one for one in found if one.check == "versions" and one.severity is not Severity.FINE]

    assert told() == []
    monkeypatch.setattr("lockstep.spark.versions.NEWEST", (4, 0))
    [newer] = told()
    assert newer.severity is Severity.WARNING and "ran with is 4.0" in newer.says
    monkeypatch.setattr("lockstep.spark.versions.OLDEST", (4, 99))
    [older] = told()
    assert older.severity is Severity.BROKEN and "4.99 or newer is needed" in older.says
    monkeypatch.undo()
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["typer>=9000", "tenacity", "no-such-package>=1"])
    [package] = told()
    assert package.command == "pip install 'typer>=9000'"
