"""Names of what a sink leaves in foreign systems. They can be parsed, and are never equal to another sink's.

A handle (a gid, a folder) carries deployment, pipeline, sink, epoch, token and 12 hex digits of the manifest hash. A
session name has to fit the 63 bytes of Postgres' application_name, so it carries the first three as a hash.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from lockstep.sinks.values import SinkContext, SinkEpoch, Txn

_PREFIX = "lockstep"
_HANDLE = re.compile(
    rf"{_PREFIX}:(?P<deployment>[0-9a-f-]{{36}}):(?P<pipeline>[A-Za-z][A-Za-z0-9_.-]{{0,39}})"
    r":(?P<sink>[A-Za-z][A-Za-z0-9_.-]{0,39}):(?P<epoch>[0-9]+):(?P<token>[0-9]+):(?P<manifest>[0-9a-f]{12})"
)


def named_by(handle: str) -> tuple[int, int, str] | None:
    """Return epoch, token and manifest (12 hex digits) of a handle of any owner; None if it isn't of this kind."""
    match = _HANDLE.fullmatch(handle)
    return (int(match["epoch"]), int(match["token"]), match["manifest"]) if match else None


@dataclass(frozen=True)
class SinkName:
    """The owner of handles and sessions: one sink of one pipeline of one deployment."""

    deployment: str
    pipeline: str
    sink: str

    @classmethod
    def of(cls, context: SinkContext, sink: str) -> SinkName:
        return cls(context.deployment, context.pipeline, sink)

    def handle(self, epoch: SinkEpoch) -> str:
        """Return the handle of this execution of `epoch`: at most 181 bytes (Postgres takes 199)."""
        owner = f"{_PREFIX}:{self.deployment}:{self.pipeline}:{self.sink}"
        return f"{owner}:{epoch.id}:{epoch.token}:{epoch.manifest_hash[:12]}"

    def transaction(self, epoch: SinkEpoch) -> Txn:
        """Return the transaction of this execution of `epoch`."""
        return Txn(self.sink, epoch.id, epoch.token, epoch.manifest_hash[:12], self.handle(epoch))

    def parse(self, handle: str) -> Txn | None:
        """Return the transaction of a handle; None if any part of the owner differs."""
        match = _HANDLE.fullmatch(handle)
        owner = (self.deployment, self.pipeline, self.sink)
        if match is None or (match["deployment"], match["pipeline"], match["sink"]) != owner:
            return None
        return Txn(self.sink, int(match["epoch"]), int(match["token"]), match["manifest"], handle)

    def session(self, epoch: int, token: int) -> str:
        """Return the session name: at most 63 bytes, with the owner as 16 hex digits of its sha256."""
        return f"{self.session_prefix(epoch)}{token}"

    def session_prefix(self, epoch: int) -> str:
        """Return the beginning of every session name of this epoch and sink."""
        owner = hashlib.sha256(f"{self.deployment}:{self.pipeline}:{self.sink}".encode()).hexdigest()[:16]
        return f"{_PREFIX}:{owner}:{epoch}:"
