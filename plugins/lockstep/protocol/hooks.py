"""Hooks by which optional features take part in the protocol.

A feature is a subclass of `Feature`. `lockstep.features.assembly` lists the features; a `Runtime` carries them. The
modules of `lockstep.protocol` call these hooks and import no feature.

Rules:

- A role calls the features in the order of the list, each hook once for each time that the role runs.
- Hooks are idempotent, as every step of a role is: a role that died is run again from its beginning.
- A hook that raises ends the role at that place, as a failing step of the role itself does. Nothing is caught, unless
  the hook's docstring says so.
- A side effect has a crash point before and after it, which belong to the feature.
- The safety rules hold for hooks, too: no hook shows rows before the decision, or deletes what a sink may still need.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from lockstep.epoch import Epoch
    from lockstep.protocol.runtime import Runtime
    from lockstep.states import Role

T = TypeVar("T")


def first_answer(answers: Iterable[T | None]) -> T | None:
    """Return the first answer that isn't None. Features behind it aren't asked if `answers` is a generator."""
    return next((answer for answer in answers if answer is not None), None)


class Feature:
    """Base class of features. Every hook does nothing."""

    # --- begin ---

    def begun(self, runtime: Runtime, epoch: Epoch) -> None:
        """The run has its epoch, whatever state that is in."""

    # --- cleanup ---

    def wal_to_keep(self, runtime: Runtime, epoch: Epoch) -> tuple[str, int] | None:
        """Return folder and bytes of a published epoch's WAL if it is to outlive cleanup. The first answer counts."""
        return None

    def cleaned(self, runtime: Runtime, epoch: Epoch, role: Role) -> None:
        """The epoch's cleanup is recorded. Errors must be logged, not raised: the epoch is finished."""

    # --- recover ---

    def sweeping_folders(self, runtime: Runtime) -> int:
        """Delete files that are due, before recovery deletes folders nobody needs; return how many WALs."""
        return 0
