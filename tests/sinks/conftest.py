"""Sweeps of the behaviour suite run by the cover, too: each step of a story is killed at, or stopped at."""

from __future__ import annotations

import signal

import pytest

from lockstep.testing import _behaviour as behaviour
from tests.cover import Cover

ACTIONS = [signal.SIGKILL, signal.SIGSTOP]


@pytest.fixture(autouse=True)
def covered_steps(cover: Cover, monkeypatch: pytest.MonkeyPatch) -> None:
    def select(steps: list[str], action: signal.Signals) -> list[int]:
        return cover.share(range(len(steps)), ACTIONS.index(action), len(ACTIONS))

    monkeypatch.setattr(behaviour, "select", select)
