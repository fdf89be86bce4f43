"""What tests of a file sink beyond this machine have a clean process do (see tests/clean_process.py)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from lockstep.sinks.files import _format as file_format
from lockstep.testing import _behaviour
from lockstep.testing import _crash_sweep as crash_sweep
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS
from lockstep.testing._crash_sweep import OnStep, reached_points
from lockstep.testing._under_test import SinkUnderTest
from tests.sampling import Sampling
from tests.sinks.guarantees import expect_row

T = TypeVar("T")

EVERYTHING = (*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING_BEHAVIOURS)
WITHOUT_CRASHES = [one.__name__ for one in EVERYTHING if one not in CRASHES]
ACTIONS = [signal.SIGKILL, signal.SIGSTOP]
STRIDE = 6  #: a run kills at one of so many steps, and stops at another one
STORIES = [
    ("prepares_and_publishes", "ALONE"),
    ("prepares_and_aborts", "ALONE"),
    ("repairs_what_was_lost", "ALONE"),
    ("repairs_what_was_lost", "REPLACEMENT"),
    ("repairs_what_was_lost", "REPLACED"),
]


@dataclass(frozen=True)
class RemoteFiles:
    """A kind of place: what makes a target of an address, and which methods of its client change something there.

    `written`, `shown`: steps that each sweep must have come by. `name`: in the page of guarantees.
    """

    name: str
    target: Callable[..., SinkUnderTest]
    client: type
    changes: tuple[str, ...]
    written: str
    shown: str

    def every_change(self, on_step: OnStep) -> None:
        """A Trace: before and after each request that changes something, and every crash point."""
        reached_points(on_step)
        for name in self.changes:
            setattr(self.client, name, _told(getattr(self.client, name), on_step))


def behave(place: RemoteFiles, name: str, uri: str) -> None:
    """One behaviour of the suite."""
    file_format.ROWS_PER_GROUP = 100  # several groups a file
    getattr(_behaviour, name)(place.target(uri))


def behave_in_crashes(place: RemoteFiles, name: str, uri: str, seed: int | None) -> tuple[int, int]:
    """A behaviour that sweeps, sampled by `seed`; how many steps were run and swept."""
    sampling = Sampling(seed)
    _behaviour.select = lambda steps, action: _share(sampling, steps, action)
    behave(place, name, uri)
    return sampling.run, sampling.swept


def die_around_each_change(
    place: RemoteFiles, story: str, plot: str, action: int, uri: str, seed: int | None
) -> tuple[int, int]:
    """Sweep a story of the suite, in one of its plots, before and after each request that changes something."""
    sampling = Sampling(seed)
    steps = crash_sweep.sweep_every_step(
        place.target(uri, success="_SUCCESS-{epoch}"),
        getattr(crash_sweep, story),
        place.every_change,
        signal.Signals(action),
        500,
        lambda steps, action: _share(sampling, steps, action),
        getattr(crash_sweep, plot),
    )
    assert place.written in steps and (place.shown in steps or "aborts" in story), steps
    return sampling.run, sampling.swept


def tell_the_guarantee(place: RemoteFiles, uri: str) -> None:
    expect_row(f"FileSink on {place.name}", place.target(uri))


def _share(sampling: Sampling, steps: list[str], action: signal.Signals) -> list[int]:
    return sampling.share(range(len(steps)), ACTIONS.index(action) * STRIDE // len(ACTIONS), STRIDE)


def _told(method: Callable[..., T], on_step: OnStep) -> Callable[..., T]:
    @wraps(method)
    def tell(client: object, *arguments: Any, **named: Any) -> T:
        on_step(f"before {method.__name__}")
        found = method(client, *arguments, **named)
        on_step(f"after {method.__name__}")
        return found

    return tell
