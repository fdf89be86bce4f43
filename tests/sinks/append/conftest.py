"""Receivers on the loopback, one process of each kind a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.sinks.committers import external
from tests.sinks.append.receiving import Receiver, receiving


@pytest.fixture(autouse=True)
def on_loopback_and_soon_at_a_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stopped in a test stays stopped; nobody waits half a minute for it."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(external, "STANDSTILL", 0.5)


@pytest.fixture(params=["tcp", "http"])
def receiver(request: pytest.FixtureRequest, memory: Path) -> Iterator[Receiver]:
    with receiving(request.param, memory) as found:
        yield found


@pytest.fixture
def counter(request: pytest.FixtureRequest, memory: Path) -> Iterator[Receiver]:
    """A receiver of the kind that is asked for, which has each record as often as it came."""
    with receiving(request.param, memory, drops_repeats=False) as found:
        yield found
