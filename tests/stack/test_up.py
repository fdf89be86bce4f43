"""`make up` and `make down`, without the servers: what they say, land and remember."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lockstep.errors import NotConfigured
from lockstep.operations import dev_stacks
from lockstep.sources.base import SourceContext
from spark_apps.flights import pipeline
from stack import __main__ as stack_main
from stack.home import Home, Ports
from stack.landing import demo_days
from stack.lifecycle import Stack
from tests.e2e.world import interval


class Started(Stack):
    """A stack that takes no time to start."""

    def up(self) -> bool:
        self.home.root.mkdir(exist_ok=True)
        self.airflow.passwords.parent.mkdir()
        self.airflow.passwords.write_text(json.dumps({"admin": "secret"}))
        self.home.environment.write_text("{}")
        return True

    def down(self) -> bool:
        self.home.environment.unlink()
        return True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("LOCKSTEP_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home", Ports(1, 2, 3, 4))
    monkeypatch.setattr(stack_main, "checkout_stack", lambda: Started(home))
    return home


def test_after_up_the_shipped_dag_has_something_to_read_and_the_stack_is_found_until_it_is_down(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = CliRunner().invoke(stack_main.app, ["up"]).stdout
    assert str(home.landing) in told and "2013-01-01" in told and "DAG flights" in told
    assert dev_stacks.find(None) == home.root
    monkeypatch.setenv("LOCKSTEP_HOME", str(home.root))
    for name, source in pipeline.sources.items():
        live = source.open(SourceContext(pipeline.name, name, lambda paths: set()))
        for day in demo_days(14):
            assert live.latest(None, interval(str(day)))  # raises SourceNotReady where nothing lies
    monkeypatch.delenv("LOCKSTEP_HOME")
    assert CliRunner().invoke(stack_main.app, ["down"]).exit_code == 0
    with pytest.raises(NotConfigured):
        dev_stacks.find(None)
