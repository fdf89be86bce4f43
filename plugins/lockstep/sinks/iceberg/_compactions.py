"""What a table knows of its compactions: two properties, which survive expired snapshots and a rollback."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.sinks.handles import SinkName

_PREFIX = "lockstep.compaction."
_LAST, _DONE = "last", "done"


@dataclass(frozen=True)
class Compactions:
    """Those of one pipeline, by their numbers: its sink may get another name. `done`: committed, 17 bytes each; `last`:
    committed or fenced; `known`: committed by any sink, a number being had once."""

    prefix: str
    done: tuple[int, ...]
    last: int | None
    known: frozenset[int]

    @classmethod
    def of(cls, owner: SinkName, properties: Mapping[str, str]) -> Compactions:
        prefix = _prefix(owner.deployment, owner.pipeline)
        last = properties.get(f"{prefix}{_LAST}")
        told = (text for name, text in properties.items() if name.startswith(_PREFIX) and name.endswith(f".{_DONE}"))
        return cls(
            prefix,
            _numbers(properties.get(f"{prefix}{_DONE}", "")),
            int(last) if last else None,
            frozenset(number for text in told for number in _numbers(text)),
        )

    def with_last(self, number: int) -> dict[str, str]:
        """The properties to set for a fence."""
        return {f"{self.prefix}{_LAST}": str(number)}

    def with_done(self, number: int) -> dict[str, str]:
        """The properties to set with a compaction's files."""
        return {**self.with_last(number), f"{self.prefix}{_DONE}": " ".join(map(str, (*self.done, number)))}


def _prefix(*whose: str) -> str:
    return f"{_PREFIX}{hashlib.sha256(':'.join(whose).encode()).hexdigest()[:16]}."


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split() if one.isdecimal())
