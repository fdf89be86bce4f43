"""What must be true at every moment, and what must be true once faults have stopped (I1 … I27 of the design)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import pyarrow.parquet as pq

from lockstep import errors
from lockstep.epoch import Epoch, KeyedBy
from lockstep.errors import IllegalTransition
from lockstep.operations.verify import verify
from lockstep.protocol.runtime import open_wal
from lockstep.sinks.files import files
from lockstep.sinks.values import Publication
from lockstep.states import DECIDED, FINISHED, SHOWN, TRANSITIONS, UNDECIDED, EpochState, ParticipantState
from tests.simulation.servers import Row, Server, Shown
from tests.simulation.world import PIPELINE, World, positions


class Violation(AssertionError):
    """An invariant is broken."""


class Watch:
    """Looks over the shoulder of every process."""

    def __init__(self, world: World, servers: dict[str, Server]) -> None:
        self._world, self._servers = world, servers
        self._decided: set[int] = set()
        self.found: list[str] = []
        self.torn: set[tuple[int, str]] = set()  #: (epoch, sink) whose prepared rows a person rolled back by hand

    def on_show(self, server: Server, shown: Shown) -> None:
        epoch = self._world.looking.epoch(PIPELINE, shown.epoch)
        self._require(epoch.state in DECIDED, f"I3: {server.name} shows {epoch}, which is {epoch.state}")
        self._require(shown.marker.manifest_hash == epoch.manifest_hash, f"I4: {server.name} shows another {epoch}")
        times = sum(other.epoch == shown.epoch for other in server.shown)
        self._require(times == 1, f"I6: {server.name} shows {epoch} {times} times")
        lives = [one.id for one in self._world.looking.generations(epoch) if one.id in {o.epoch for o in server.shown}]
        self._require(lives == [epoch.id], f"I6: {server.name} shows the lives {lives} of one range")
        if epoch.in_order:
            order = [o.epoch for o in server.shown if self._world.looking.epoch(PIPELINE, o.epoch).in_order]
            self._require(order == sorted(order), f"I9: {server.name} shows epochs in the order {order}")

    def on_discard(self, folder: str) -> None:
        number, token = (part.rpartition("=")[2] for part in folder.split("/")[-2:])
        epoch = self._world.looking.epoch(PIPELINE, int(number))
        rubbish = int(token) < epoch.attempt and folder != epoch.wal
        over = epoch.state in SHOWN or epoch.state is EpochState.VOID
        kept = self._world.looking.retained_wal(PIPELINE, epoch.id)
        stays = kept is not None and kept.expired_at is None and kept.wal == folder
        readers = [one.id for one in self._world.epochs() if one.restores == epoch.id and one.state not in FINISHED]
        self._require(not stays, f"I21: {folder} is deleted, and is kept")
        self._require(not readers or folder != epoch.wal, f"I21: {folder} is deleted, epochs {readers} refer to it")
        self._require(over or rubbish, f"I21: {folder} is deleted, {epoch} is {epoch.state} at attempt {epoch.attempt}")

    def on_decision(self) -> None:
        """Every vote that was counted must be good: its prepared rows are there, its WAL is sealed and there."""
        for epoch in self._world.epochs():
            if epoch.state not in DECIDED or epoch.id in self._decided:
                continue
            self._decided.add(epoch.id)
            vote = self._world.looking.participants(PIPELINE, epoch.id)["voting"].vote
            kept = vote is not None and vote.handle in self._servers["voting"].prepared
            self._require(kept, f"I12: {epoch} is decided with vote {vote and vote.token}, whose rows are gone")

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            self.found.append(message)
            raise Violation(message)


def unexpected(error: BaseException) -> str | None:
    """An error that is no refusal but a bug: one without a name, or the database's last line of defence."""
    names = {type(cause).__name__ for cause in (error, error.__cause__) if cause is not None}
    if not any(base.__name__ == "LockstepError" for base in type(error).__mro__):
        return f"an error without a name: {type(error).__name__}: {error}"
    if isinstance(error, IllegalTransition) and (error.__cause__ is not None or "bug of Lockstep" in str(error)):
        return f"I1: only the ledger's trigger refused it: {error} ({', '.join(sorted(names))})"
    return None


#: What no misfortune of the simulator causes: nobody damages a WAL, swaps a server or alters a source.
ALARMS = (
    errors.LedgerConflict,
    errors.WalCorrupt,
    errors.TargetChanged,
    errors.OutcomeUnknown,
    errors.StagingRefused,
    errors.SourceChanged,
    errors.SinkRejected,
    errors.PreflightRefused,
)


def false_alarm(error: BaseException | None, problems: Iterable[str] = ()) -> str | None:
    """What a task ended with, or recovery reports, that sends a person to look for damage where there is none."""
    if isinstance(error, ALARMS):
        return f"I26: a false alarm: {type(error).__name__}: {error}"
    names = {alarm.__name__ for alarm in ALARMS}
    return next((f"I26: a false alarm: {told}" for told in problems if told.partition(":")[0] in names), None)


# --- once faults have stopped ----------------------------------------------------------------------------------------


def require_resolved(world: World, servers: dict[str, Server]) -> None:
    """After a round of recovery: nothing decided is unfinished, nothing undecided left a trace, nothing lies around."""
    for epoch in world.epochs():
        _require(epoch.state in UNDECIDED | FINISHED, f"I15: {epoch} is {epoch.state}")
    left = [handle for server in servers.values() for handle in server.prepared]
    _require(not left, f"I13: prepared transactions are left: {left}")
    sealed = {epoch.wal for epoch in world.epochs() if epoch.state in UNDECIDED}
    staging = world.folder / "staging"
    folders = {str(path.relative_to(staging)) for path in staging.glob("*/*/epoch=*/*")}
    kept = world.looking.kept_wals(PIPELINE)
    for one in kept:
        open_wal(world.runtime().staging, world.looking.epoch(PIPELINE, one.epoch)).check()
    known = sealed | {one.wal for one in kept}
    _require(folders <= known, f"I13: folders are left in staging: {sorted(folders - known)}")
    pending = [path.name for path in (world.folder / "out" / ".lockstep").glob("*") if path.is_dir()]
    _require(not pending, f"I13: pending folders are left in the file sink: {pending}")
    require_shown_once(world, servers)
    require_legal_history(world)


def require_shown_once(world: World, servers: dict[str, Server]) -> None:
    """I4, I5, I6, I7, I19: in every sink, each epoch's rows once, all of one execution; nothing of the undecided."""
    rows: dict[str, Mapping[int, Sequence[Row]]] = {
        name: {shown.epoch: shown.rows for shown in server.shown} for name, server in servers.items()
    }
    if "files" in world.sink_names:
        rows["files"] = _rows_of_files(world)
    for epoch in world.epochs():
        shown = {name: sorted(found.get(epoch.id, ())) for name, found in rows.items()}
        expected = sorted(_expected(world, epoch))
        for name, found in shown.items():
            _require(found == expected, f"I5: {name} shows {found} of {epoch} ({epoch.state}), expected {expected}")
        if epoch.state in DECIDED:
            problems = [one.problem for one in verify(world.runtime(), epoch) if not one.agrees]
            _require(not problems, f"I5: {epoch}: verify says {problems}")
    _require(_are_joined(world), "I8: the ranges of the epochs don't join, or overlap")


def _expected(world: World, epoch: Epoch) -> Iterable[Row]:
    if epoch.state not in DECIDED or epoch.state is EpochState.REPLACED:
        return []
    while epoch.restores is not None:
        epoch = world.looking.epoch(PIPELINE, epoch.restores)
    written_by = int((epoch.wal or "").rpartition("/")[2])
    return [(position, written_by) for position in positions(epoch.plan.sources["source"])]


def _rows_of_files(world: World) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for path in files(str(world.folder / "out")):
        number = int(path.partition("epoch=")[2].partition("-")[0])
        table = pq.ParquetFile(path).read()
        found.setdefault(number, []).extend(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return found


def _are_joined(world: World) -> bool:
    ranges = [positions(epoch.plan.sources["source"]) for epoch in world.epochs() if epoch.generation is None]
    if world.pipeline.identity is KeyedBy.CURSOR:
        return all(before.stop == after.start for before, after in pairwise(ranges))
    return len({found.start for found in ranges}) == len(ranges)


def require_legal_history(world: World) -> None:
    """I1, I2, I12, I24: declared arrows, attempts that only rise, one decision, its attempt stays, reasons told."""
    for epoch in world.epochs():
        rows = world.sql(
            "SELECT sink, source_state, target_state, role, attempt, actor, reason FROM lockstep.transition "
            f"WHERE pipeline = '{PIPELINE}' AND epoch = {epoch.id} ORDER BY id"
        )
        arrows = {
            (arrow.source, arrow.target, role)
            for machine in TRANSITIONS.values()
            for arrow in machine
            for role in arrow.roles
        }
        for sink, source, target, role, _, actor, reason in rows:
            raised = sink is None and source == target and source in UNDECIDED
            may_be_noted = (ParticipantState.PREPARED, ParticipantState.PUBLISHED)  # a person's word, what verify found
            noted = sink is not None and source == target and source in may_be_noted and role == "operator"
            _require((source, target, role) in arrows or raised or noted, f"I1: {epoch}: {role} {source} → {target}")
            _require(bool(actor), f"I1: {epoch}: nobody did {source} → {target}")
            _require(role != "operator" or bool(reason), f"I24: {epoch}: {source} → {target} without a reason")
        of_epoch = [row for row in rows if row[0] is None]
        attempts = [row[4] for row in of_epoch]
        _require(attempts == sorted(attempts), f"I12: {epoch}: its attempts were {attempts}")
        decisions = [row[4] for row in of_epoch if row[2] == EpochState.COMMITTED]
        _require(len(decisions) == (epoch.state in DECIDED), f"I2: {epoch}: it was decided {len(decisions)} times")
        _require(not decisions or epoch.attempt == decisions[0], f"I2: {epoch}: attempt {decisions} was decided")


def require_no_repair(world: World, torn: set[tuple[int, str]]) -> None:
    """I12: what was voted was there to be committed, unless a person had rolled it back by hand."""
    repaired = Counter(
        (epoch.id, name)
        for epoch in world.epochs()
        for name, found in world.looking.participants(PIPELINE, epoch.id).items()
        if found.publication == Publication.REPAIRED
    )
    _require(set(repaired) <= torn, f"I12: voted rows were gone and written again: {set(repaired) - torn}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise Violation(message)
