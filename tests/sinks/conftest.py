"""Sweeps of the behaviour suite are sampled, too: each step of a story is killed at, or stopped at."""

from __future__ import annotations

import signal

import pytest

from lockstep.testing import _behaviour as behaviour
from tests.sampling import Sampling

ACTIONS = [signal.SIGKILL, signal.SIGSTOP]


@pytest.fixture
def stride() -> int:
    """A run kills at one of so many steps, and stops at another one."""
    return len(ACTIONS)


@pytest.fixture(autouse=True)
def sampled_steps(sampling: Sampling, stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def select(steps: list[str], action: signal.Signals) -> list[int]:
        return sampling.share(range(len(steps)), ACTIONS.index(action) * stride // len(ACTIONS), stride)

    monkeypatch.setattr(behaviour, "select", select)
