"""What a message tells to paste can be pasted, and gets the epoch going."""

from __future__ import annotations

import json
import re
import shlex

import psycopg2
import pytest
from typer.testing import CliRunner, Result

from lockstep.cli import app
from lockstep.epoch import RunKey
from lockstep.errors import IllegalTransition, TargetChanged
from tests.crash.world import World

RUN = RunKey("orders", "manual__2026-01-01T00:00:00+00:00")


def _command(said: str) -> list[str]:
    """The only command of Lockstep's that a message has."""
    [found] = re.findall("`(lockstep .*?)`", said)
    return shlex.split(found)[1:]


def _pasted(said: str) -> Result:
    return CliRunner().invoke(app, _command(said))


def _stuck(world: World) -> str:
    found = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    [stuck] = [one["stuck"] for pipeline in found for one in pipeline["epochs"] if one["stuck"]]
    return str(stuck)


def test_a_stuck_epoch_names_its_run_and_the_command_that_gives_it_up(world: World) -> None:
    world.run_until(RUN, 0, "prepare.files")
    world.run_task("abort", RUN, 0)
    said = _stuck(world)
    assert "to continue it, `airflow dags clear orders --run-id manual__2026-01-01T00:00:00+00:00`;" in said
    assert _pasted(said).exit_code == 0
    assert world.state_of(0) == "void"
    assert CliRunner().invoke(app, ["status"]).exit_code == 0


def test_a_decided_epoch_that_is_stuck_or_cleaned_up_too_early_names_the_command_that_publishes_it(
    world: World,
) -> None:
    world.run_until(RUN, 0, "commit")
    world.execute(world.ledger_dsn, "UPDATE lockstep.epoch SET changed_at = now() - interval '1 hour'")
    publish = _command(_stuck(world))
    with pytest.raises(IllegalTransition) as refused:
        world.run_task("cleanup", RUN, 0)
    assert _command(str(refused.value)) == publish
    assert CliRunner().invoke(app, publish).exit_code == 0
    world.require_exactly_once(0)


def test_a_target_that_changed_names_the_command_that_takes_a_persons_word(world: World) -> None:
    world.run_until(RUN, 0, "commit")
    connection = psycopg2.connect(world.warehouse_dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK PREPARED %s", (world.prepared()[0],))
        cursor.execute("UPDATE lockstep_target_id SET id = gen_random_uuid()")
    connection.close()
    with pytest.raises(TargetChanged) as changed:
        world.run_task("publish.warehouse", RUN, 0)
    words = ["not-applied" if word == "applied" else word for word in _command(str(changed.value))]
    assert words[:5] == ["resolve", "numbers", "1", "warehouse", "not-applied"]
    resolved = CliRunner().invoke(app, words)
    assert resolved.exit_code == 0, resolved.output
    assert _pasted(resolved.output).exit_code == 0
    world.require_exactly_once(0)


@pytest.mark.fault("L17")
def test_a_target_that_lacks_what_was_published_names_the_command_that_goes_on_without_it(world: World) -> None:
    world.run(RUN, 0)
    (world.folder / "out").rename(world.folder / "gone")
    with pytest.raises(TargetChanged, match=r"out/.lockstep/target.json is missing") as lost:
        world.run_task("begin", RunKey("orders", "next"), 1)
    done = _pasted(str(lost.value))
    assert done.exit_code == 0 and "sink files continues without epoch 1 and whatever else it lacks" in done.output
    world.run(RunKey("orders", "next"), 1)
    world.require_exactly_once(1)
