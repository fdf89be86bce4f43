"""The command line, run on a real ledger and real sinks."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from typer.testing import Result

from lockstep.audits import unique
from lockstep.cli import app
from lockstep.cli._commands import savepoints, with_input
from lockstep.cli._tables import show_epochs
from lockstep.cli._wal_commands import wals
from lockstep.environment import RESERVED, EnvironmentConnections
from lockstep.epoch import Epoch, Identity, Plan, Position, RunKey, SourceRange
from lockstep.errors import EpochHeld, LedgerConflict, NotConfigured
from lockstep.ledger.report import EpochStatus, PipelineStatus
from lockstep.sources import KafkaSource, PostgresTableSource, Source
from lockstep.states import EpochState
from tests.cases import cases
from tests.cli.conftest import Lockstep
from tests.crash.world import World

RUN = RunKey("cli", "run")


def _json(result: Result) -> Any:
    return json.loads(result.stdout)


def test_every_command_explains_itself_with_an_example_that_it_takes(world: World, lockstep: Lockstep) -> None:
    groups = [((), app), (("savepoint",), savepoints), (("wal",), wals)]
    commands = [
        (*group, found.name or found.callback.__name__)
        for group, of in groups
        for found in of.registered_commands
        if found.callback
    ]
    assert len(commands) >= 14
    for command in commands:
        result = lockstep(*command, "--help")
        assert result.exit_code == 0
        assert "--json" in result.output
        [example] = re.findall(r"For instance: (.*)", re.sub(r"\s+", " ", result.output))
        [line] = re.findall(r"lockstep [^)]*", example)
        words = shlex.split(line)[1:]
        assert words[: len(command)] == list(command)
        assert lockstep(*words).exit_code != 2, result.output  # wrong usage


@pytest.mark.fault("H25")
def test_status_shows_epochs_and_what_is_stuck_and_why(world: World, lockstep: Lockstep) -> None:
    world.run(RUN, next(world.days))
    stuck = next(world.days)
    world.run_until(RunKey("cli", "stuck"), stuck, "prepare.warehouse")
    assert lockstep("status").exit_code == 0
    world.fall_silent()
    shown = lockstep("status")
    assert shown.exit_code == 1
    assert "cleaned" in shown.output
    assert "stuck" in shown.output
    as_json = lockstep("status", "numbers", "--json")
    assert as_json.exit_code == 1
    [pipeline] = _json(as_json)
    by_id = {one["epoch"]["id"]: one for one in pipeline["epochs"]}
    assert by_id[1]["stuck"] is None
    assert by_id[1]["rows"] == {"numbers": 20}
    assert "no vote of files" in by_id[2]["stuck"]
    history = _json(lockstep("status", "numbers", "--epoch", 1, "--json"))
    moves = [(one["source"], one["target"]) for one in history if one["sink"] is None]
    assert moves[0] == (None, "planned")
    assert moves[-3:] == [("staged", "committed"), ("committed", "published"), ("published", "cleaned")]
    assert all(one["actor"] and one["at"] for one in history)
    assert lockstep("status", "numbers", "--epoch", 1).exit_code == 0
    unknown = lockstep("status", "nothing")
    assert (unknown.exit_code, unknown.stderr) == (1, "UnknownEpoch: the ledger has no pipeline 'nothing'\n")
    assert _error(lockstep("status", "nothing", "--json"))["error"] == "UnknownEpoch"


def test_verify_agrees_with_what_was_sealed_and_finds_a_changed_a_missing_and_a_doubled_row(
    world: World, lockstep: Lockstep
) -> None:
    world.run(RUN, next(world.days))
    agreed = lockstep("verify", "numbers")
    assert agreed.exit_code == 0
    assert "all agree" in agreed.output
    world.execute(world.warehouse_dsn, "UPDATE public.numbers SET label = 'changed' WHERE number = 3")
    differs = lockstep("verify", "numbers", "--json")
    assert differs.exit_code == 3
    problems = {one["sink"]: one["problem"] for one in _json(differs)}
    assert problems["files"] is None
    assert "digest" in problems["warehouse"]
    world.execute(world.warehouse_dsn, "DELETE FROM public.numbers WHERE number = 5")
    assert lockstep("verify", "numbers", 1).exit_code == 3, "one is missing"
    world.execute(world.warehouse_dsn, "INSERT INTO public.numbers SELECT * FROM public.numbers WHERE number = 6")
    assert lockstep("verify", "numbers", 1).exit_code == 3, "and one is doubled"


def test_status_says_through_which_epoch_everything_is_verified(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ("first", "second"):
        world.run(RunKey("cli", run), next(world.days))
    assert "2 cleaned; verified through epoch 2" in lockstep("status", "numbers").output
    with monkeypatch.context() as patched:
        patched.setenv("LOCKSTEP_WAREHOUSE", "postgresql://nobody@127.0.0.1:1/none")
        assert lockstep("verify", "numbers").exit_code != 0
        [found] = _json(lockstep("status", "numbers", "--json"))
    assert (found["verified_through"], found["unproven"]) == (2, None), "what can't be asked is neither"
    world.execute(world.warehouse_dsn, "DELETE FROM public.numbers WHERE number = 5 AND lockstep_epoch = 1")
    assert "verified through epoch 2" in lockstep("status", "numbers").output, "nobody has looked yet"
    assert lockstep("verify", "numbers").exit_code == 3
    told = lockstep("status", "numbers")
    assert told.exit_code == 0 and "2 cleaned; none verified" in told.output
    assert "unproven: epoch 1 in warehouse: output numbers: shows 19 rows" in told.output
    assert "`lockstep verify numbers 1` compares it" in told.output
    [found] = _json(lockstep("status", "numbers", "--json"))
    assert (found["verified_through"], found["unproven"]["epoch"], found["unproven"]["sink"]) == (0, 1, "warehouse")
    world.execute(world.warehouse_dsn, "DELETE FROM public.numbers WHERE lockstep_epoch = 2")
    world.execute(world.warehouse_dsn, "UPDATE public.numbers SET lockstep_epoch = 2")
    assert lockstep("verify", "numbers", 2).exit_code == 3
    [found] = _json(lockstep("status", "numbers", "--json"))
    assert found["unproven"]["epoch"] == 1, "the first one is named"


def test_a_cleared_run_whose_marker_is_gone_is_unproven(world: World, lockstep: Lockstep) -> None:
    day = next(world.days)
    world.run(RUN, day)
    world.execute(world.warehouse_dsn, "DELETE FROM lockstep_marker")
    with pytest.raises(LedgerConflict, match="restored from a backup"):
        world.run_task("publish.warehouse", RUN, day)
    assert "unproven: epoch 1 in warehouse: the target holds no marker" in lockstep("status", "numbers").output


def test_abort_voids_the_attempt_and_a_new_run_brings_the_epoch(world: World, lockstep: Lockstep) -> None:
    day = next(world.days)
    world.run_until(RUN, day, "prepare.files")
    result = lockstep("abort", "numbers", 1, "--reason", "a test")
    assert result.exit_code == 0
    assert world.prepared() == []
    assert any(one["reason"] == "a test" for one in _json(lockstep("status", "numbers", "--epoch", 1, "--json")))
    world.run(RunKey("cli", "next"), day)
    world.require_exactly_once(day)


@pytest.mark.fault("H19")
def test_what_is_decided_can_not_be_taken_back(world: World, lockstep: Lockstep) -> None:
    day = next(world.days)
    world.run_until(RUN, day, "commit")
    for command in ("abort", "void"):
        result = lockstep(command, "numbers", 1, "--reason", "regret", "--json")
        assert result.exit_code == 1
        assert _error(result)["error"] == "IllegalTransition"
    result = lockstep("resolve", "numbers", 1, "warehouse", "applied", "--reason", "a guess")
    assert result.exit_code == 1
    assert "still holds it unpublished" in result.stderr
    result = lockstep("recover", "--json")
    assert result.exit_code == 0
    assert _json(result)[0]["finished"] == [1]
    world.require_exactly_once(day)


@pytest.mark.fault("N11")
def test_a_held_epoch_is_explained_by_every_command_and_goes_on_when_it_is_released(
    world: World, lockstep: Lockstep
) -> None:
    held = replace(world, pipeline=replace(world.pipeline, audits=(unique("numbers", ["day", "number"]),)))
    with pytest.raises(EpochHeld):
        held.run_until(RUN, 0, "audit")
    sentence = "held by unique_numbers_day_number (1 row), and nothing of it is shown: `lockstep release numbers 1"
    for command in (("status",), ("doctor",), ("verify", "numbers", 1)):
        told = lockstep(*command, columns=500)
        assert told.exit_code == 1 and sentence in told.output, command
    assert lockstep("recover", "--hold", 0).exit_code == 0
    held.require_nothing_shown(0)
    manifest = (held.epoch_of(0).manifest_hash or "")[:12]
    unseen = lockstep("release", "numbers", 1, "--reason", "they are right", columns=1000)
    assert unseen.exit_code == 1 and f"{sentence} --manifest {manifest} --reason" in unseen.output
    done = lockstep("release", "numbers", 1, "--manifest", manifest, "--reason", "they are right")
    assert done.exit_code == 0 and "epoch 1" in done.output and "its next run goes on with it" in done.output
    held.run(RUN, 0)
    held.require_exactly_once(0)
    told = lockstep("status", columns=500)
    assert told.exit_code == 0 and "released: epoch 1, released by" in told.output and "they are right" in told.output
    assert "because: released: they are right" in lockstep("status", "numbers", "--epoch", 1).output
    again = lockstep("release", "numbers", 1, "--manifest", manifest, "--reason", "twice")
    assert again.exit_code == 0
    verdict = json.loads(lockstep("status", "--json").stdout)[0]["epochs"][0]["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("released", "they are right")


def test_a_voided_range_is_never_read_and_says_why(world: World, lockstep: Lockstep) -> None:
    day = next(world.days)
    world.run_until(RUN, day, "prepare.files")
    result = lockstep("replan", "numbers", 1, "--reason", "a new sink")
    assert result.exit_code == 1
    assert "--definition module:name" in result.stderr
    assert lockstep("void", "numbers", 1, "--reason", "the source was wrong").exit_code == 0
    world.require_nothing_shown(day)
    assert world.prepared() == []
    assert world.left_in_staging() == []
    with pytest.raises(Exception, match="the source was wrong"):
        world.run(RunKey("cli", "next"), day)


def test_resolve_applied_records_a_persons_word(world: World, lockstep: Lockstep) -> None:
    day = next(world.days)
    world.run_until(RUN, day, "commit")
    connection = psycopg2.connect(world.warehouse_dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK PREPARED %s", (world.prepared()[0],))
    connection.close()
    refused = lockstep("resolve", "numbers", 1, "warehouse", "applied", "--reason", "a guess")
    assert refused.exit_code == 1
    assert "lockstep resolve numbers 1 warehouse not-applied" in refused.stderr
    world.execute(world.warehouse_dsn, "UPDATE lockstep_target_id SET id = gen_random_uuid()")  # restored elsewhere
    assert lockstep("resolve", "numbers", 1, "warehouse", "applied", "--reason", "I looked").exit_code == 0
    assert world.publications(day)["warehouse"] == "resolved"
    history = _json(lockstep("status", "numbers", "--epoch", 1, "--json"))
    assert ("warehouse", "I looked") in {(one["sink"], one["reason"]) for one in history}


def test_no_command_prints_a_password(world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LEDGER", "postgresql://me:hunter2@127.0.0.1:1/nowhere")
    for arguments in (("status",), ("recover",), ("void", "numbers", 1, "--reason", "x"), ("migrate",)):
        result = lockstep(*arguments)
        assert result.exit_code == 75
        assert "hunter2" not in result.output


@cases(
    "connection, variable",
    [
        ("warehouse", "LOCKSTEP_WAREHOUSE"),
        ("my-ware.house", "LOCKSTEP_MY_WARE_HOUSE"),
        ("staging", "LOCKSTEP_CONNECTION_STAGING"),
        ("Ledger", "LOCKSTEP_CONNECTION_LEDGER"),
        ("port_spark", "LOCKSTEP_CONNECTION_PORT_SPARK"),
        ("connection_spark", "LOCKSTEP_CONNECTION_CONNECTION_SPARK"),
    ],
)
def test_a_connection_never_takes_a_variable_that_means_something_else(
    connection: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"LOCKSTEP_{connection.upper()}", "something else")
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(NotConfigured, match=f"set {variable} to its DSN"):
        EnvironmentConnections()[connection]
    monkeypatch.setenv(variable, "a DSN")
    assert EnvironmentConnections()[connection] == "a DSN"


def test_every_variable_of_the_project_is_reserved() -> None:
    root = Path(__file__).parents[2]
    pages = [path for folder in ("plugins", "stack", "dags", "spark_apps") for path in (root / folder).rglob("*.py")]
    named = {name for path in pages for name in re.findall(r"LOCKSTEP_([A-Z]+(?:_[A-Z]+)*)\b", path.read_text())}
    taken = {name for name in named if not name.startswith(("PORT", "CONNECTION"))}
    connections = {"CATALOG", "KAFKA", "WAREHOUSE"}  # of the stack
    assert taken - RESERVED <= connections, "add them to RESERVED and to docs/operations.md"


def _error(result: Result) -> Any:
    return json.loads(result.stderr)


def test_redefine_keeps_a_persons_word_and_reason_and_prune_says_what_goes_and_what_stays(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run(RUN, next(world.days))
    monkeypatch.setattr("tests.crash.world.pipeline", world.pipeline, raising=False)
    done = lockstep("redefine", "numbers", "--definition", "tests.crash.world:pipeline", "--reason", "it moved")
    assert (done.exit_code, done.output) == (0, "redefined: numbers\n")
    kept = world.execute(world.ledger_dsn, "SELECT change, reason, found -> 'sources' FROM lockstep.pipeline_change")
    assert kept == [("redefined", "it moved", ["numbers"])]
    said = lockstep("prune", "--keep", 30, "--dry-run")
    assert said.exit_code == 0, said.output
    assert "nothing would be dropped" in said.stdout
    assert "kept: transition_from_the_start, from the start to " in said.stdout
    pruned = _json(lockstep("prune", "--json"))
    assert (pruned["dry_run"], pruned["dropped"], pruned["held_by"], len(pruned["kept"])) == (False, [], None, 2)
    assert lockstep("prune", "--keep", 0).exit_code == 2


def test_renumber_prints_what_the_ledger_lacks_and_where_numbers_go_on(world: World, lockstep: Lockstep) -> None:
    world.run(RUN, next(world.days))
    world.execute(
        world.warehouse_dsn,
        "INSERT INTO lockstep_marker (deployment, pipeline, sink, epoch, token, manifest_hash) "
        "SELECT deployment, pipeline, sink, 7, 4000, manifest_hash FROM lockstep_marker",
    )
    refused = lockstep("renumber", "numbers", "--reason", "restored")
    assert refused.exit_code == 1 and "1 of the 1 epochs" in refused.stderr and "--unprotected" in refused.stderr
    done = lockstep("renumber", "numbers", "--reason", "restored", "--unprotected")
    assert done.exit_code == 0
    assert "epoch 7 (without its range) in warehouse, token 4000" in done.output
    assert "epochs of numbers go on above 7, tokens above 4000" in done.output
    told = _json(lockstep("renumber", "numbers", "--reason", "again", "--unprotected", "--json"))
    assert (told["epoch"], told["token"], told["shown"][0]["sink"]) == (7, 4000, "warehouse")


def test_an_attempt_counts_from_one_for_people_and_keeps_its_token_for_programs(
    world: World, lockstep: Lockstep, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "lockstep")
    world.run(RunKey("cli", "other"), 0)
    run = RunKey("cli", "run")
    world.run_until(run, 1, "prepare.warehouse")
    token = world.epoch_of(1).attempt
    assert token > 1
    assert f"attempt 1 (token {token})" in caplog.text
    [pipeline] = json.loads(lockstep("status", "numbers", "--json").stdout)
    [first] = [one for one in pipeline["epochs"] if one["epoch"]["id"] == 2]
    assert (first["epoch"]["attempt"], first["attempts"]) == (token, 1)
    world.run_task("abort", run, 1)
    world.run_task("begin", run, 1)
    again = world.epoch_of(1).attempt
    history = lockstep("status", "numbers", "--epoch", 2).output
    assert f"attempt 1 (token {token})" in history
    assert f"attempt 2 (token {again})" in history
    moves = json.loads(lockstep("status", "numbers", "--epoch", 2, "--json").stdout)
    assert [(one["attempt"], one["ordinal"]) for one in moves if one["sink"] is None] == [
        (token, 1),
        (token, 1),
        (token + 3, None),  # of the abort: nobody's
        (again, 2),
    ]


def test_a_problem_of_many_epochs_is_told_once_with_their_numbers(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for day in range(3):
        world.run_until(RunKey("cli", f"{day}"), day, "commit")
    with monkeypatch.context() as patched:
        patched.setenv("LOCKSTEP_WAREHOUSE", "postgresql://postgres@127.0.0.1:1/nowhere")
        down = lockstep("recover")
        [report] = json.loads(lockstep("recover", "--json").stdout)
    assert down.exit_code == 75
    [problem] = [line for line in down.output.splitlines() if "problem" in line]
    assert "SinkUnavailable: sink warehouse" in problem
    assert problem.endswith("(epochs 1, 2, 3)")
    assert report["problems"] == [problem.partition("problem: ")[2]]
    assert caplog.text.count("SinkUnavailable") <= 2  # once a round
    done = lockstep("recover")
    assert (done.exit_code, done.output) == (0, "numbers: 3 finished, 0 voided, 0 swept\n")


def status_of(number: int, source: Source, position: Position) -> EpochStatus:
    plan = Plan({"events": SourceRange(None, position, source.spec())}, {})
    epoch = Epoch("shop", number, None, EpochState.PUBLISHED, number, plan, datetime.now(UTC))
    return EpochStatus(epoch, timedelta(0), timedelta(0), None, False, (), None)


def shown_of(epochs: tuple[EpochStatus, ...], capsys: pytest.CaptureFixture[str]) -> str:
    found = PipelineStatus("shop", Identity.CURSOR, 2, {EpochState.PUBLISHED: len(epochs)}, (), epochs)
    show_epochs([with_input(found, lambda pipeline, source, paths: set())])
    return " ".join(capsys.readouterr().out.split())


def test_status_tells_of_the_newest_epoch_who_holds_rows_back_and_that_a_source_is_read_to_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PostgresTableSource("public.events", connection="shop", order_by="xid")
    old = status_of(1, table, {"upto": "1", "held_by": "session 6"})
    shown = shown_of((status_of(2, table, {"upto": "2", "held_by": "session 7 of clerk, for 1:02:03"}), old), capsys)
    assert "rows waited for session 7 of clerk, for 1:02:03" in shown and "session 6" not in shown
    assert "waited for" not in shown_of((status_of(2, table, {"upto": "2"}), old), capsys)
    monkeypatch.setenv("LOCKSTEP_KAFKA", "127.0.0.1:1")  # nobody is asked
    kafka = KafkaSource("orders", connection="kafka", end="latest")
    orders = {"id": "1", "partitions": {"0": [0, 5], "1": [2, 7]}, "leaders": {}}
    for end in (7, 8):
        bound = {"of": {}, "offsets": {"orders": {"0": 5, "1": end}}, "complete": True}
        epoch = status_of(1, kafka, {"cluster": "c", "topics": {"orders": orders}, "bound": bound})
        assert ("finished: source events is read to its end" in shown_of((epoch,), capsys)) is (end == 7)
