"""The simulator turns red for each planted bug: otherwise its green would mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import Epoch, Plan, RunKey
from lockstep.features import merging, restating
from lockstep.ledger import Ledger
from lockstep.ledger import _guards as guards
from lockstep.ledger._connection import statement
from lockstep.protocol import abort, begin, cleanup, commit, prepare, publish, recover, stage, sweep
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.values import SinkEpoch
from lockstep.states import EpochState, Role
from tests.simulation.misfortunes import LEFT_UNSEALED, Kind, Taste
from tests.simulation.servers import Server, Session
from tests.simulation.simulating import NONE, SimulationFailed, simulate

MOST_SEEDS = 60
#: two publishers that looked for a marker before either had set it
BETWEEN_LOOK_AND_MARKER = Taste(places=("redoing: insert the marker",))
#: an attempt that lives, and a recovery that comes when its rows wait and its vote isn't recorded
SWEPT_BEFORE_THE_VOTE = Taste({Kind.RECOVERY: 20, Kind.HANG: 10, Kind.CLOCK: 0.1}, ("record_vote",))
#: a decided epoch that nobody publishes while the next one is decided
LEFT_BEFORE_PUBLISH = Taste(
    {Kind.KILL: 20, Kind.RELEASE: 0.1, Kind.RECOVERY: 0}, ("publish.before_sink", "commit.after")
)
#: a prepare that stands still while others decide, publish and clean up
OVERTAKEN_IN_PREPARE = Taste(
    {Kind.HANG: 20, Kind.RELEASE: 0.2, Kind.KILL: 0},
    ("prepare.after_token", "prepare.after_preflight", "prepare.before_write"),
)
Plant = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, tuple[Plant, int, Taste, dict[str, bool]]] = {}


def bug(seed: int = 0, taste: Taste = NONE, **about: bool) -> Callable[[Plant], Plant]:
    """Register a planted bug; its docstring says what is wrong.

    `seed`: where to look first, to save time. `taste`: the misfortunes that show it, for a bug that few seeds show.
    `about`: how to simulate; `restates`: it is about ranges that are replaced, `restores`: by earlier rows, `merges`:
    about stuck epochs that are merged.
    """

    def register(plant: Plant) -> Plant:
        BUGS[plant.__name__] = plant, seed, taste, about
        return plant

    return register


@bug(seed=12, taste=BETWEEN_LOOK_AND_MARKER)
def marker_key_with_the_token(patch: pytest.MonkeyPatch) -> None:
    """Two publications of one epoch don't meet at the marker."""

    def key(self: Server, epoch: SinkEpoch) -> Hashable:
        return epoch.id, epoch.token

    patch.setattr(Server, "marker_key", key)


@bug(seed=81, taste=BETWEEN_LOOK_AND_MARKER)
def taken_marker_ignored(patch: pytest.MonkeyPatch) -> None:
    """Whoever got no marker row writes its rows nevertheless."""
    real = Server._claim

    def claim(self: Server, session: Session) -> None:
        real(self, session)
        session.claimed = True

    patch.setattr(Server, "_claim", claim)


@bug()
def fence_ignored(patch: pytest.MonkeyPatch) -> None:
    """A stale attempt seals, votes and decides."""
    patch.setattr(guards, "require_current", lambda row, attempt, *told: None)


@bug(seed=9)
def branches_rolled_back_before_the_attempt_is_raised(patch: pytest.MonkeyPatch) -> None:
    """Abort touches the sinks first and decides second."""
    real = abort.abort_epoch

    def abort_epoch(runtime: Runtime, number: int, role: Role, **how: Any) -> Epoch:
        epoch = runtime.ledger.epoch(runtime.pipeline, number)
        if epoch.state is EpochState.STAGED:
            for name in epoch.plan.sinks:
                with runtime.sink_of(epoch, name).opened(runtime.sink_context()) as sink:
                    for txn in sink.pending():
                        sink.abort(txn)
        return real(runtime, number, role, **how)

    for module in (abort, recover):
        patch.setattr(module, "abort_epoch", abort_epoch)
    patch.setattr("tests.simulation.misfortunes.abort_epoch", abort_epoch)


@bug()
def cleanup_before_published(patch: pytest.MonkeyPatch) -> None:
    """The WAL goes once the epoch is decided."""

    def commit_and_clean(runtime: Runtime, run: RunKey) -> Epoch:
        epoch = commit.commit(runtime, run)
        runtime.staging.discard_epoch(runtime.ledger.deployment(), epoch.pipeline, epoch.id)
        return epoch

    patch.setattr("tests.simulation.dag_run.commit", commit_and_clean)


@bug(seed=5)
def no_sweeper(patch: pytest.MonkeyPatch) -> None:
    """Nobody takes away what the dead have left."""
    for module in (recover, publish, prepare, sweep):
        patch.setattr(module, "sweep_sink", lambda *found, **how: [])
    for module in (recover, sweep):
        patch.setattr(module, "sweep_folders", lambda *found, **how: 0)


@bug(seed=4, taste=SWEPT_BEFORE_THE_VOTE)
def sweeper_takes_the_unvoted(patch: pytest.MonkeyPatch) -> None:
    """Whatever has no vote is rubbish to it, though its execution lives."""
    real = sweep.judge

    def judge(epoch: Epoch, participant: Any, token: int, below: int = 0) -> sweep.DeletionVerdict:
        voted = participant is not None and participant.vote is not None and participant.vote.token == token
        return real(epoch, participant, token, below) if voted else sweep.DeletionVerdict.ROLL_BACK

    patch.setattr(sweep, "judge", judge)


@bug(seed=60)
def publish_without_a_decision(patch: pytest.MonkeyPatch) -> None:
    """A task marked as success is believed."""
    patch.setattr(publish, "DECIDED", frozenset(EpochState))


@bug(seed=6)
def folders_swept_by_age(patch: pytest.MonkeyPatch) -> None:
    """Every folder that isn't the sealed one is rubbish to recovery."""
    patch.setattr(sweep, "_is_rubbish", lambda epoch, token, folder: folder != epoch.wal)


@bug(seed=29)
def votes_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Commit believes that its upstream tasks have succeeded; only the trigger is left."""
    patch.setattr(guards, "require_votes", lambda tx, row: None)


@bug(seed=15, taste=LEFT_BEFORE_PUBLISH)
def cursor_epochs_published_in_any_order(patch: pytest.MonkeyPatch) -> None:
    """A sink shows epoch 2 before epoch 1."""
    patch.setattr(Ledger, "require_predecessor_published", lambda self, epoch, sink: None)


@bug(seed=1, taste=OVERTAKEN_IN_PREPARE)
def alarms_leave_unasked(patch: pytest.MonkeyPatch) -> None:
    """Whoever was overtaken takes what its successor did for damage."""
    for module in (begin, stage, prepare, publish, cleanup):
        patch.setattr(module, "unless_superseded", lambda work, meanwhile: work())


@bug(seed=1, restates=True)
def replaced_rows_stay(patch: pytest.MonkeyPatch) -> None:
    """New rows come, old ones don't go."""
    patch.setattr(Server, "_delete", lambda self, session: None)


@bug(seed=1, taste=LEFT_BEFORE_PUBLISH, restates=True)
def restated_before_it_is_shown(patch: pytest.MonkeyPatch) -> None:
    """A replacement is planned though some sink doesn't show yet what it replaces; only the trigger is left."""
    patch.setattr(restating, "require_restatable", lambda runtime, current: None)
    patch.setattr(restating, "require_replaceable", lambda runtime, sink, current: None)
    real = guards.require_state

    def require_state(row: Any, state: EpochState, verb: str) -> None:
        if verb != "replace":
            real(row, state, verb)

    patch.setattr(guards, "require_state", require_state)


@bug(restates=True, restores=True)
def kept_wals_let_go_of_unasked(patch: pytest.MonkeyPatch) -> None:
    """A cleanup goes by what it found itself, whatever another one has said."""

    def decide_retention(self: Ledger, epoch: Epoch, role: Role, kept: tuple[str, int] | None) -> RetainedWal:
        real(self, epoch, role, kept)
        return RetainedWal(epoch.id, epoch.wal or "", 0, epoch.planned_at, expired_at=epoch.planned_at)

    real = Ledger.decide_retention
    patch.setattr(Ledger, "decide_retention", decide_retention)


@bug(seed=15, restates=True)
def replacements_move_the_end(patch: pytest.MonkeyPatch) -> None:
    """A cursor's next epoch goes on where the one with the highest number ended, whosever place that took."""
    told = "lockstep.ledger._connection.statement"
    patch.setattr(told, lambda name: statement(name).replace("AND generation = 0", ""))


@bug(taste=LEFT_UNSEALED, merges=True)
def merged_ranges_lose_what_was_frozen(patch: pytest.MonkeyPatch) -> None:
    """Whoever merges reads what the next epoch would have, and nothing of what the stuck one had."""

    def join_next(runtime: Runtime, stuck: Epoch, following: Plan) -> Plan:
        had, comes = stuck.plan.sources, following.sources
        return replace(stuck.plan, sources={name: replace(comes[name], start=had[name].start) for name in had})

    patch.setattr(merging, "_join_next", join_next)


@pytest.mark.tier("all")
@pytest.mark.parametrize(("plant", "first", "taste", "about"), BUGS.values(), ids=BUGS)
def test_a_planted_bug_turns_the_simulator_red(
    plant: Plant,
    first: int,
    taste: Taste,
    about: dict[str, bool],
    simulated_ledger: str,
    memory: Path,
    standing: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    for seed in range(first, first + MOST_SEEDS):
        try:
            simulate(simulated_ledger, memory, seed, taste, **about)
        except SimulationFailed as failed:
            print(f"{plant.__doc__} Seed {seed}: {str(failed).splitlines()[-1]}")
            return
    pytest.fail(f"nobody notices in {MOST_SEEDS} seeds: {plant.__doc__}")
