"""The states of an epoch and of its participants, and every legal arrow between them.

`TRANSITIONS` is the protocol. The ledger's guards are tested against it, its trigger refuses every other arrow, the
diagram in docs/protocol.md is drawn from it, and the model checker in tests/model walks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar


class EpochState(StrEnum):
    """States of an epoch. There is no `prepared` (commit counts the votes) and no `aborted` (abort opens a new
    attempt)."""

    PLANNED = "planned"  #: its input is frozen; nothing of it is believed yet
    STAGED = "staged"  #: its WAL is sealed and known to the ledger by hash
    COMMITTED = "committed"  #: decided: every sink must come to show it
    PUBLISHED = "published"  #: every sink shows it
    CLEANED = "cleaned"  #: its WAL is gone; counts and digests stay
    REPLACED = "replaced"  #: another epoch of its range was decided, and takes its place in every sink
    VOID = "void"  #: a person gave its range up, with a reason


class ParticipantState(StrEnum):
    """States of one sink in one epoch."""

    PENDING = "pending"  #: no vote of the current attempt
    PREPARED = "prepared"  #: voted: publication can be finished by any process
    PUBLISHED = "published"  #: the sink shows the epoch, its marker proves it


class Role(StrEnum):
    """The actors of transitions. A role is one module in `lockstep.protocol` and one task of the DAG."""

    BEGIN = "begin"
    STAGE = "stage"
    AUDIT = "audit"  #: moves no state: without its verdict `prepare` and `commit` don't, where a plan has audits
    PREPARE = "prepare"
    COMMIT = "commit"
    PUBLISH = "publish"
    CLEANUP = "cleanup"
    ABORT = "abort"
    RECOVER = "recover"
    OPERATOR = "operator"  #: a person, through replan, void or resolve


class Fence(StrEnum):
    """Conditions of a transition besides the state it starts from."""

    NONE = "none"  #: open to anybody: the decision has been taken
    ATTEMPT = "attempt"  #: only under the epoch's current attempt
    EXECUTION = "execution"  #: the current attempt, and no larger execution token has voted
    NEW_ATTEMPT = "new attempt"  #: takes a fresh token first, which fences every older attempt
    SUCCESSOR = "successor"  #: only in the transaction that decides the epoch which takes its place


S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True)
class Transition(Generic[S]):
    """One legal arrow. `source` None means that the row is inserted."""

    source: S | None
    target: S
    roles: frozenset[Role]
    fence: Fence


def _arrow(source: S | None, target: S, roles: Role | tuple[Role, ...], fence: Fence) -> Transition[S]:
    return Transition(source, target, frozenset((roles,) if isinstance(roles, Role) else roles), fence)


_E, _P = EpochState, ParticipantState

EPOCH_TRANSITIONS: tuple[Transition[EpochState], ...] = (
    _arrow(None, _E.PLANNED, Role.BEGIN, Fence.NEW_ATTEMPT),
    _arrow(_E.PLANNED, _E.STAGED, Role.STAGE, Fence.ATTEMPT),
    # the sealed WAL failed its checks before the decision, or a person replans: the transform runs again
    _arrow(_E.STAGED, _E.PLANNED, (Role.BEGIN, Role.OPERATOR), Fence.NEW_ATTEMPT),
    _arrow(_E.STAGED, _E.COMMITTED, Role.COMMIT, Fence.ATTEMPT),
    _arrow(_E.COMMITTED, _E.PUBLISHED, (Role.PUBLISH, Role.RECOVER, Role.OPERATOR), Fence.NONE),
    _arrow(_E.PUBLISHED, _E.CLEANED, (Role.CLEANUP, Role.RECOVER), Fence.NONE),
    _arrow(_E.CLEANED, _E.REPLACED, Role.COMMIT, Fence.SUCCESSOR),
    _arrow(_E.PLANNED, _E.VOID, Role.OPERATOR, Fence.NEW_ATTEMPT),
    _arrow(_E.STAGED, _E.VOID, Role.OPERATOR, Fence.NEW_ATTEMPT),
)

PARTICIPANT_TRANSITIONS: tuple[Transition[ParticipantState], ...] = (
    _arrow(None, _P.PENDING, (Role.BEGIN, Role.OPERATOR), Fence.NEW_ATTEMPT),
    _arrow(_P.PENDING, _P.PREPARED, Role.PREPARE, Fence.EXECUTION),
    # a larger execution token replaces the vote of a smaller one while undecided
    _arrow(_P.PREPARED, _P.PREPARED, Role.PREPARE, Fence.EXECUTION),
    # raising the attempt voids every vote
    _arrow(_P.PREPARED, _P.PENDING, (Role.BEGIN, Role.ABORT, Role.RECOVER, Role.OPERATOR), Fence.NEW_ATTEMPT),
    _arrow(_P.PREPARED, _P.PUBLISHED, (Role.PUBLISH, Role.RECOVER, Role.OPERATOR), Fence.NONE),
)

TRANSITIONS: dict[type[StrEnum], tuple[Transition[EpochState], ...] | tuple[Transition[ParticipantState], ...]] = {
    EpochState: EPOCH_TRANSITIONS,
    ParticipantState: PARTICIPANT_TRANSITIONS,
}

UNDECIDED = frozenset({EpochState.PLANNED, EpochState.STAGED})
DECIDED = frozenset({EpochState.COMMITTED, EpochState.PUBLISHED, EpochState.CLEANED, EpochState.REPLACED})
SHOWN = frozenset({EpochState.PUBLISHED, EpochState.CLEANED, EpochState.REPLACED})  #: every sink has shown it
FINISHED = frozenset({EpochState.CLEANED, EpochState.REPLACED, EpochState.VOID})  #: nothing is left to do
