"""A simulated target: sessions, rows that wait in prepared transactions, markers. What it does, it does at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lockstep.errors import LedgerConflict, SinkRejected, SinkUnavailable
from lockstep.sinks.values import Marker, SinkEpoch
from tests.simulation.baton import Order, stand

T = TypeVar("T")
Row = tuple[int, int]  #: position in the source, token of the execution of stage that wrote it


@dataclass(frozen=True)
class Shown:
    """What readers see of one transaction."""

    epoch: int
    marker: Marker
    rows: tuple[Row, ...]


@dataclass(eq=False)
class Session:
    """An open transaction, then perhaps a prepared one. Whoever holds the marker's row keeps others from it."""

    epoch: SinkEpoch
    claimed: bool = False
    alive: bool = True
    rows: list[Row] = field(default_factory=list)
    deleted: list[Shown] = field(default_factory=list)  #: what it no longer shows once it is committed

    @property
    def token(self) -> int:
        return self.epoch.token


class Server:
    """Every call stands still first, and may fail or lose its answer there."""

    def __init__(self, name: str, on_show: Callable[[Server, Shown], None]) -> None:
        self.name = name
        self.target_id = f"target of {name}"
        self.sessions: list[Session] = []
        self.prepared: dict[str, Session] = {}
        self.shown: list[Shown] = []
        self._markers: dict[Hashable, Marker] = {}
        self._on_show = on_show

    # --- what a client may call ---

    def open(self, epoch: SinkEpoch) -> Session:
        return self._call("open", lambda: self._opened(Session(epoch)))

    def claim(self, session: Session) -> None:
        """Insert the marker; `session.claimed` tells whether its row was free. Lower tokens give way."""
        self._call("insert the marker", lambda: self._claim(session))

    def write(self, session: Session, rows: Sequence[Row]) -> None:
        self._call("write rows", lambda: self._alive(session).rows.extend(rows))

    def delete(self, session: Session) -> None:
        """The rows of the epochs whose place the session's takes. Raises `LedgerConflict` where one isn't shown."""
        self._call("delete rows", lambda: self._delete(self._alive(session)))

    def prepare(self, session: Session, handle: str) -> None:
        self._call("PREPARE TRANSACTION", lambda: self._prepare(session, handle))

    def commit(self, session: Session) -> None:
        self._call("COMMIT", lambda: self._show(self._ended(self._alive(session))))

    def commit_prepared(self, handle: str) -> bool:
        """False if there is no such transaction."""
        return self._call("COMMIT PREPARED", lambda: self._commit_prepared(handle))

    def roll_back_prepared(self, handle: str) -> None:
        self._call("ROLLBACK PREPARED", lambda: self.prepared.pop(handle, None))

    def handles(self) -> list[str]:
        return self._call("list prepared", lambda: sorted(self.prepared))

    def find_marker(self, epoch: int) -> Marker | None:
        return self._call("look for the marker", lambda: next(self._markers_of(epoch), None))

    def drop(self, session: Session) -> None:
        """The client is gone, killed or not: nothing of an open transaction happens."""
        if session in self.sessions:
            self._ended(session)

    # --- what happens to it ---

    def crash(self) -> None:
        """Open transactions are lost, prepared ones survive."""
        for session in list(self.sessions):
            self._ended(session)

    # --- inside ---

    def marker_key(self, epoch: SinkEpoch) -> Hashable:
        """Never the token."""
        return epoch.id

    def _call(self, what: str, effect: Callable[[], T]) -> T:
        order = stand(f"{self.name}: {what}", faulty=True)
        if order is Order.FAIL:
            raise SinkUnavailable(f"{self.name} did not take {what}")
        result = effect()
        if order is Order.LOSE:
            raise SinkUnavailable(f"{self.name} took {what}, its answer was lost")
        return result

    def _opened(self, session: Session) -> Session:
        self.sessions.append(session)
        return session

    def _claim(self, session: Session) -> None:
        key = self.marker_key(self._alive(session).epoch)
        for holder in [*self.sessions, *self.prepared.values()]:
            if holder is not session and holder.claimed and self.marker_key(holder.epoch) == key:
                self._give_way(holder, session)
        session.claimed = key not in self._markers

    def _delete(self, session: Session) -> None:
        for replaced in session.epoch.replaced:
            marker = next(self._markers_of(replaced.id), None)
            if marker is None or marker.manifest_hash != replaced.manifest_hash:
                raise LedgerConflict(f"{self.name} holds {marker} of epoch {replaced.id}, which is to be replaced")
            session.deleted += [shown for shown in self.shown if shown.epoch == replaced.id]

    def _give_way(self, holder: Session, to: Session) -> None:
        if holder.token >= to.token:
            raise SinkUnavailable(f"{self.name}: token {holder.token} holds the marker that {to.token} wants")
        if holder in self.sessions:
            self._ended(holder)
        self.prepared = {handle: kept for handle, kept in self.prepared.items() if kept is not holder}

    def _alive(self, session: Session) -> Session:
        if not session.alive:
            raise SinkUnavailable(f"{self.name}: the session of token {session.token} was ended")
        return session

    def _ended(self, session: Session) -> Session:
        self.sessions.remove(session)
        session.alive = False
        return session

    def _prepare(self, session: Session, handle: str) -> None:
        self._ended(self._alive(session))
        if handle in self.prepared:
            raise SinkRejected(f"{self.name}: {handle} is prepared already")
        self.prepared[handle] = session

    def _commit_prepared(self, handle: str) -> bool:
        session = self.prepared.pop(handle, None)
        if session is not None:
            self._show(session)
        return session is not None

    def _show(self, session: Session) -> None:
        epoch = session.epoch
        marker = Marker(epoch.id, epoch.token, epoch.manifest_hash)
        self._markers[self.marker_key(epoch)] = marker
        shown = Shown(epoch.id, marker, tuple(session.rows))
        self.shown = [*(one for one in self.shown if one not in session.deleted), shown]
        self._on_show(self, shown)

    def _markers_of(self, epoch: int) -> Iterator[Marker]:
        return (marker for marker in self._markers.values() if marker.epoch == epoch)
