"""Operational arguments of sinks as the ledger knows them: of the definition that began last, and by people's word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lockstep.epoch import Json


@dataclass(frozen=True)
class SinkSettings:
    """`deployed`: a spec with these arguments alone; None before any `begin`. `override`: goes before it."""

    deployed: Json | None
    override: Mapping[str, Json]


@dataclass(frozen=True)
class Override:
    """A person's word on one sink. `settings` empty: what was said before is taken back."""

    sink: str
    settings: Mapping[str, Json]
    actor: str
    reason: str
    at: datetime
