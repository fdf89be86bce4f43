"""Log lines carry what they are about as fields: of the roles in any process, and as JSON of the command line."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from lockstep.epoch import RunKey
from lockstep.observability import log_context
from tests.crash.world import World

RUN = RunKey("cli", "run")


class Keeping(logging.Handler):
    """Keeps the fields that each line of Lockstep's has."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), structlog.contextvars.get_contextvars()))


@pytest.fixture
def kept() -> Iterator[Keeping]:
    log, handler = logging.getLogger("lockstep"), Keeping()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    structlog.contextvars.clear_contextvars()
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)
    structlog.contextvars.clear_contextvars()


def fields_of(kept: Keeping, part: str) -> dict[str, Any]:
    [found] = [fields for line, fields in kept.lines if part in line]
    return found


def test_each_line_of_a_role_and_of_recovery_says_pipeline_epoch_token_and_sink(world: World, kept: Keeping) -> None:
    world.run(RUN, 0)
    attempt = world.epoch_of(0).attempt
    always = {"pipeline": "numbers", "epoch": 1}
    assert fields_of(kept, "is planned") == {**always, "token": attempt}
    staged = fields_of(kept, "is staged after")
    assert staged == {**always, "token": staged["token"]} and staged["token"] > attempt
    voted = fields_of(kept, "warehouse voted")
    assert voted == {**always, "token": voted["token"], "sink": "warehouse"} and voted["token"] > staged["token"]
    assert fields_of(kept, "is committed") == {**always, "token": attempt}
    assert fields_of(kept, "files shows it")["sink"] == "files"
    assert fields_of(kept, "is cleaned") == {**always, "token": attempt}
    kept.lines.clear()
    for day in (1, 2):
        world.run_until(RunKey("cli", f"{day}"), day, "commit")
    world.recover()
    shown = [fields for line, fields in kept.lines if "shows it" in line]
    told = [(2, "files"), (2, "warehouse"), (3, "files"), (3, "warehouse")]
    assert sorted((one["epoch"], one["sink"]) for one in shown) == told
    assert structlog.contextvars.get_contextvars() == {}, "a role's fields end with it"


def test_the_command_line_logs_json_with_fields_on_stderr_and_tells_errors_so(world: World) -> None:
    """By an option, or by the environment."""
    world.run_until(RUN, 0, "commit")
    program = str(Path(sys.executable).with_name("lockstep"))

    def said(*command: str, **environment: str) -> tuple[str, list[dict[str, Any]]]:
        done = subprocess.run(
            [program, *command], capture_output=True, text=True, check=False, env={**os.environ, **environment}
        )
        return done.stdout, [json.loads(line) for line in done.stderr.splitlines()]

    printed, lines = said("--log-format", "json", "recover", "numbers", "--json")
    assert json.loads(printed), "what is printed stays what it was"
    shown = [line for line in lines if "shows it" in line["event"]]
    assert [(line["pipeline"], line["epoch"], line["level"]) for line in shown] == [("numbers", 1, "info")] * 2
    assert all({"timestamp", "logger", "event"} <= line.keys() for line in lines)
    _, [line] = said("status", "nobody", **{log_context.FORMAT: "json"})
    assert (line["level"], line["event"]) == ("error", "UnknownEpoch: the ledger has no pipeline 'nobody'")
