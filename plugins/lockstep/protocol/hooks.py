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

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.epoch import Epoch
    from lockstep.protocol.runtime import Runtime


class Feature:
    """Base class of features. Every hook does nothing."""

    # --- begin ---

    def begun(self, runtime: Runtime, epoch: Epoch) -> None:
        """The run has its epoch, whatever state that is in."""
