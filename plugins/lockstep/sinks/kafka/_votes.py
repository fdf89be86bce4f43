"""What a KafkaSink's vote says besides: how its epoch is sent, whoever sends it.

`Vote.handle` is "shards=3", "avro={…}", both with a space between them, or None.
"""

from __future__ import annotations

import re
from dataclasses import replace

from lockstep.epoch import Vote

_HANDLE = re.compile(r"(?:shards=(?P<shards>\d+))? ?(?:avro=(?P<avro>.*))?", re.DOTALL)


def voted_with(vote: Vote, *, shards: int | None = None, avro: str | None = None) -> Vote:
    """The vote, which says in how many shards, and by which schemas (`Writers.to_text`) its epoch is sent."""
    told = {"shards": shards or shards_voted(vote), "avro": avro or avro_voted(vote)}
    return replace(vote, handle=" ".join(f"{name}={value}" for name, value in told.items() if value) or None)


def shards_voted(vote: Vote) -> int | None:
    """With how many shards the epoch is sent; None: without transactions, and by a rebuilt
    ledger."""
    found = _told(vote, "shards")
    return int(found) if found else None


def avro_voted(vote: Vote) -> str | None:
    return _told(vote, "avro")


def _told(vote: Vote, name: str) -> str | None:
    found = _HANDLE.fullmatch(vote.handle or "")
    return found[name] if found else None
