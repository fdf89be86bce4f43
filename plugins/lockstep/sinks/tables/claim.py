"""A transaction whose first row is the epoch's marker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep.sinks.base import SinkEpoch

Connection = TypeVar("Connection")
Cursor = TypeVar("Cursor")


@dataclass
class TableClaim(Generic[Connection, Cursor]):
    """An open transaction. `claimed` False: the marker is taken, or another publisher is at work; nothing is open."""

    epoch: SinkEpoch
    connection: Connection
    cursor: Cursor
    target_id: str
    close: Callable[[], None]  #: ends the transaction: without a commit or prepare before, nothing of it happened
    claimed: bool = False
    rows: dict[str, int] = field(default_factory=dict)
