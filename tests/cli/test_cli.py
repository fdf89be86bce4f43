"""The command line, run on a real ledger and real sinks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg2
import pyarrow as pa
import pytest
import typer
from typer.testing import Result

from lockstep.audits import unique
from lockstep.cli._app import reported
from lockstep.cli._tables import show_rows
from lockstep.connections.environment import RESERVED, EnvironmentConnections
from lockstep.epoch import RunKey
from lockstep.errors import EpochHeld, EpochVoid, NotConfigured
from lockstep.operations.replan import void
from lockstep.sinks import FileSink
from tests.cases import cases
from tests.cli.conftest import Lockstep
from tests.crash.world import World

RUN = RunKey("cli", "run")


def _json(result: Result) -> Any:
    return json.loads(result.stdout)


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


@pytest.mark.fault("R3")
def test_status_names_what_the_newest_epoch_has_otherwise(world: World, lockstep: Lockstep) -> None:
    for run in ("a", "b"):
        world.run(RunKey("cli", run), next(world.days))
    moved = FileSink("files", output="numbers", path=str(world.folder / "elsewhere"))
    sinks = [moved if one.name == "files" else one for one in world.pipeline.sinks]
    replace(world, pipeline=replace(world.pipeline, sinks=sinks)).run(RunKey("cli", "c"), next(world.days))
    shown = " ".join(lockstep("status", "numbers").output.split())
    assert "redefined: numbers epoch 1 [" in shown and "another definition of sink files" in shown
    assert "The same goes for epochs 2" in shown
    [pipeline] = _json(lockstep("status", "numbers", "--json"))
    assert {one["epoch"]["id"]: one["redefined"] for one in pipeline["epochs"]} == {
        1: ["sink files"],
        2: ["sink files"],
        3: [],
    }


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
    sentence = "held by unique_numbers_day_number (1 row), and not published: `lockstep release numbers 1"
    for command in (("status",), ("doctor",), ("verify", "numbers", 1)):
        told = lockstep(*command, columns=500)
        assert told.exit_code == 1 and sentence in told.output, command
    assert lockstep("recover", "--recovery-grace", 0).exit_code == 0
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
    monkeypatch.setattr(EnvironmentConnections, "_ids", {})  # as in a process of its own
    monkeypatch.setenv(f"LOCKSTEP_{connection.upper()}", "something else")
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(NotConfigured, match=f"set {variable} to its DSN"):
        EnvironmentConnections()[connection]
    monkeypatch.setenv(variable, "a DSN")
    assert EnvironmentConnections()[connection] == "a DSN"


@pytest.mark.fault("Q12")
@cases("other", ["two.logins", "Two-Logins"])
def test_two_connections_of_one_variable_are_refused_and_neither_gets_the_others_login(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TWO_LOGINS", "a DSN")
    assert [EnvironmentConnections()["two-logins"] for _ in range(2)] == ["a DSN", "a DSN"]
    with pytest.raises(NotConfigured, match=f"'two-logins' and '{other}' are both read from LOCKSTEP_TWO_LOGINS"):
        EnvironmentConnections()[other]


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
    kept = world.execute(world.ledger_dsn, "SELECT change, reason, details -> 'sources' FROM lockstep.pipeline_change")
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


@pytest.mark.fault("P18")
def test_renumber_knows_the_sinks_of_the_definition(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run(RUN, next(world.days))
    command = ("renumber", "numbers", "--lacking", "later", "--reason", "it stays away")
    assert "numbers has no sink later, but files, warehouse; " in (refused := lockstep(*command)).stderr
    assert "say --definition module:name" in refused.stderr
    later = FileSink("later", output="numbers", path=str(world.folder / "later"))
    module: Any = ModuleType("spark_apps.numbers")
    module.pipeline = replace(world.pipeline, sinks=[*world.pipeline.sinks, later])
    monkeypatch.setitem(sys.modules, "spark_apps.numbers", module)
    assert "sink later shows the last epoch" in lockstep(*command).stderr


@pytest.mark.fault("R6")
def test_what_the_ledger_holds_is_shown_as_it_is_and_no_terminal_obeys_it(
    world: World, lockstep: Lockstep, capsys: pytest.CaptureFixture[str]
) -> None:
    world.run_until(RunKey("cli", "stuck"), next(world.days), "prepare.warehouse")
    hostile = ":a: :smile: [bold]x[/] \x1b[31mred \x9b2J \u202eback"
    void(world.runtime(), 1, hostile + "long " * 20_000)
    begun = time.monotonic()
    told = lockstep("status", "numbers", columns=400).output + lockstep("status", "numbers", "--epoch", 1).output
    with pytest.raises(typer.Exit), reported(False):
        raise EpochVoid(hostile)
    told += capsys.readouterr().err
    assert time.monotonic() - begun < 20
    assert told.count(r":a: :smile: [bold]x[/] \x1b[31mred \x9b2J \u202eback") == 2
    assert not set("\x1b\x9b\u202e") & set(told)
    values = [":a:", ":smile:", "[red]x[/]", "back\\"]
    show_rows([pa.record_batch({":b:": values})], pa.schema({":b:": pa.string()}))
    assert capsys.readouterr().out.split() == [":b:", "─" * 11, *values]


@pytest.mark.fault("R7")
@cases(
    "asked, code, why",
    [
        ("status nothing --epoch 1", 1, "UnknownEpoch"),
        ("status numbers --epoch 99", 1, "UnknownEpoch"),
        (f"status numbers --epoch {2**70}", 1, "UnknownEpoch"),
        ("override nothing", 1, "UnknownEpoch"),
        ("recover numbers --recovery-grace -5", 2, "--recovery-grace"),
        ("recover numbers --recovery-grace nan", 2, "--recovery-grace"),
        ("recover numbers --recovery-grace 1e300", 2, "--recovery-grace"),
        (f"status --limit {2**70}", 2, "--limit"),
        (f"verify numbers --limit {2**70}", 2, "--limit"),
        (f"wal list numbers --limit {2**70}", 2, "--limit"),
        ("prune --keep 99999999999", 2, "--keep"),
        ("exporter --timeout nan --once", 2, "--timeout"),
        ("compact numbers files --expire 999999d", 2, "--expire"),
        ("void numbers 1 --reason " + "x" * 100_000, 2, "--reason"),
        ("void numbers 1 --reason \x1b[31mred", 2, "--reason"),
        ("redefine numbers --reason a\nb", 2, "--reason"),
        ("override numbers files --clear --reason \u202e", 2, "--reason"),
    ],
)
def test_what_means_nothing_is_refused_and_no_traceback(
    world: World, lockstep: Lockstep, asked: str, code: int, why: str
) -> None:
    if "numbers" in asked and world.runtime().ledger.last_epoch("numbers") is None:
        world.run_until(RUN, next(world.days), "stage")
    done = lockstep(*asked.split(" "))
    assert (done.exit_code, type(done.exception)) == (code, SystemExit)
    assert why in done.stderr


@pytest.mark.fault("R7")
def test_an_output_that_is_full_is_one_sentence(world: World) -> None:
    world.run(RUN, next(world.days))
    for arguments in (["status"], ["status", "--json"]):
        command = [sys.executable, "-c", "from lockstep.cli import app; app()", *arguments]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "can't be written to stdout: No space left on device" in done.stderr


@pytest.mark.fault("R7")
def test_a_closed_output_and_an_argument_that_is_no_utf_8_make_no_traceback(world: World, lockstep: Lockstep) -> None:
    world.run(RUN, next(world.days))
    command = [sys.executable, "-c", "from lockstep.cli import app; app()", "status"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    odd = lockstep("status", "a\udcff")
    assert (odd.exit_code, odd.stderr) == (
        1,
        "an argument or the output has text that isn't utf-8: set PYTHONUTF8=1\n",
    )


@pytest.mark.fault("R14")
@cases(
    "code, told",
    [
        ("import os\nos.environ['NO_SUCH_VARIABLE']", r"KeyError: 'NO_SUCH_VARIABLE' in .*/{name}\.py, line 2;"),
        ("def f(:", r"SyntaxError: .*\({name}\.py, line 1\);"),
        ("import sys\n\nsys.exit('not here')", r"SystemExit: not here in .*/{name}\.py, line 3;"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise ValueError('a\\nb')", r"ValueError: a b in .*/{name}\.py, line 1;"),
        ("import asyncio\nraise asyncio.CancelledError('x')", r"CancelledError: x in .*/{name}\.py, line 2;"),
        ("class E(Exception):\n __str__ = lambda self: 1 / 0\nraise E", r"E: <.* failed> in .*/{name}\.py, line 3;"),
        ("class P:\n __class__ = property(lambda self: 1 / 0)\npipeline = P()", "ZeroDivisionError: .*, line 2;"),
    ],
)
def test_a_definition_that_raises_is_one_line_with_its_file_and_line(
    code: str, told: str, world: World, lockstep: Lockstep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"raises_{len(code)}"
    (tmp_path / f"{name}.py").write_text(code)
    for command in ("redefine", "renumber"):
        done = lockstep(command, "numbers", "--definition", name, "--reason", "x")
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.stderr
        assert re.match(rf"InvalidPipeline: {name} can't be imported: {told.format(name=name)}", done.stderr), (
            done.stderr
        )
