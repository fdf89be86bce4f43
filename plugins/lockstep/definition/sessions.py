"""The definition of session windows: how long a key must be silent for its session to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from lockstep.definition.windows import WindowDefinition

ABSORBED = "absorbed"  #: column of the results: another session has taken this one in, or begins earlier now


@dataclass(frozen=True, kw_only=True)
class SessionDefinition(WindowDefinition):
    """What `lockstep.compute.declared_sessions.Sessions` is told: see there. Raises `InvalidPipeline`."""

    lengths: ClassVar[tuple[str, ...]] = ("gap",)

    gap: timedelta

    @property
    def span(self) -> timedelta:
        return self.gap

    @property
    def found_by(self) -> Sequence[str]:
        return self.key  # a row's session isn't known before those of its key are

    @property
    def own_columns(self) -> list[str]:
        return [*super().own_columns, ABSORBED]

    @property
    def takes_back(self) -> bool:
        """Whether a session that was emitted may be absorbed."""
        return self.emit == "updates" or self.lateness > timedelta(0)

    def _require_sound_times(self) -> None:
        if self.gap <= timedelta(0):
            raise self._refused(f"gap {self.gap} must be above 0")
        super()._require_sound_times()
