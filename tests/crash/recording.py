"""Recorders around the clients of the ledger, the sinks and the file system: side effects between crash points."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import psycopg2.extensions
import pytest

from lockstep import crash
from lockstep.crash import CrashPoint

Event = tuple[str, str]  #: ("point", its name) or ("effect", what was done)

_VERB = re.compile(r"^(?:\s|--[^\n]*\n)*([A-Za-z]+(?:\s+(?:PREPARED|TRANSACTION|POINT))?)")
_CHANGES = {"INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "TRUNCATE", "COPY"}
_AT_ONCE = {"COMMIT PREPARED", "ROLLBACK PREPARED", "PREPARE TRANSACTION"}
#: A draft means nothing until it is renamed or linked to a name that does, nor does a folder that only holds others:
#: making or deleting them is no side effect.
_DRAFT = re.compile(r"~[0-9a-f]{8}|/\.[^/]+\.[0-9a-f]{8}$|/epoch=[0-9]+$")
_FILE_EVENTS = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir"}


class Recording:
    """What happened, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.on = False

    def effect(self, what: str) -> None:
        if self.on:
            self.events.append(("effect", what))

    def point(self, point: CrashPoint) -> None:
        if self.on:
            self.events.append(("point", point.value))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While the effects are somebody else's: the Spark job's."""
        self.on = False
        try:
            yield
        finally:
            self.on = True

    def unseparated(self) -> list[tuple[str, str]]:
        """Pairs of side effects that no crash point separates."""
        pairs, before = [], None
        for kind, what in self.events:
            if kind == "point":
                before = None
            else:
                if before is not None:
                    pairs.append((before, what))
                before = what
        return pairs


_recordings: list[Recording] = []
_folder: list[str] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _recordings or not _recordings[-1].on:
        return
    if event in _FILE_EVENTS:
        named = arguments[1:2] if event == "os.link" else arguments[:2]
        paths = [os.fsdecode(path) for path in named if isinstance(path, str | bytes)]
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT:
        paths = [os.fsdecode(arguments[0])] if isinstance(arguments[0], str | bytes) else []
    else:
        return
    shown = [str(Path(path).relative_to(_folder[-1])) for path in paths if path.startswith(_folder[-1])]
    if event in ("os.mkdir", "open") and all(Path(path).exists() for path in paths):
        return  # nothing is made
    if shown and not all(_DRAFT.search(path) for path in shown):
        _recordings[-1].effect(f"{event} {' → '.join(shown)}")


sys.addaudithook(_audit)


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Recording]:
    """Record what this process does to Postgres servers and below `folder`."""
    recording = Recording()
    real = psycopg2.connect

    def connect(*arguments: Any, **keywords: Any) -> Any:
        keywords.setdefault("connection_factory", type("Recorded", (_Connection,), {"recording": recording}))
        return real(*arguments, **keywords)

    monkeypatch.setattr(psycopg2, "connect", connect)
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    _recordings.append(recording)
    _folder.append(str(folder))
    stop = crash.observe(recording.point)
    recording.on = True
    try:
        yield recording
    finally:
        recording.on = False
        stop()
        _recordings.pop()
        _folder.pop()
        monkeypatch.undo()


class _Connection(psycopg2.extensions.connection):
    """Notes what its cursors change, and when that becomes durable."""

    recording: Recording

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.changes: list[str] = []
        self.begun = False  # by a BEGIN of its own, on a connection that commits each statement otherwise

    def cursor(self, *arguments: Any, **keywords: Any) -> Any:
        default: Any = self.cursor_factory  # None until somebody sets it, whatever its stub says
        factory = keywords.pop("cursor_factory", None) or default or psycopg2.extensions.cursor
        return super().cursor(*arguments, cursor_factory=type("Cursor", (_Cursor, factory), {}), **keywords)

    def commit(self) -> None:
        super().commit()
        if self.changes:
            self.recording.effect(f"commit of {', '.join(dict.fromkeys(self.changes))}")
        self.changes.clear()

    def rollback(self) -> None:
        super().rollback()
        self.changes.clear()

    def note(self, statement: str) -> None:
        found = _VERB.match(statement)
        verb = re.sub(r"\s+", " ", found[1].upper()) if found else ""
        what = " ".join(statement.split())[:60]
        at_once = self.autocommit and not self.begun
        if verb in ("BEGIN", "COMMIT", "ROLLBACK", *_AT_ONCE):
            self.begun = verb == "BEGIN"
        if verb in _AT_ONCE or (at_once and verb.split()[0:1] and verb.split()[0] in _CHANGES):
            self.recording.effect(what)
            self.changes.clear()
        elif verb.split()[0:1] and verb.split()[0] in _CHANGES:
            self.changes.append(what)
        elif verb == "COMMIT" and self.changes:
            self.recording.effect(f"commit of {', '.join(dict.fromkeys(self.changes))}")
            self.changes.clear()
        elif verb == "ROLLBACK":
            self.changes.clear()


class _Cursor(psycopg2.extensions.cursor):
    """Goes before the class of cursor that was asked for."""

    def execute(self, query: Any, *arguments: Any, **keywords: Any) -> None:
        super().execute(query, *arguments, **keywords)
        self._note((self.query or b"").decode(errors="replace"))

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
        super().copy_expert(sql, file, size)
        self._note("COPY")

    def _note(self, statement: str) -> None:
        assert isinstance(self.connection, _Connection)
        self.connection.note(statement)
