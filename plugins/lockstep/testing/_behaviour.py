"""What every sink must do, one function per property. Run each of `behaviours` against a fresh `SinkUnderTest`.

A sink is tested for the guarantee that it declares. Exactly once: each row once, whatever happens. At least once: each
row, no foreign row, and an epoch that is recorded as sent isn't sent again. At most once: no row twice, and each row
once of an epoch that isn't reported as cut off; without a fault none is. None: no row before the decision, every row
after it, and nothing is tested about crashes.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

import lockstep.testing._crash_sweep as crash_sweep
from lockstep.crash import CrashPoint
from lockstep.epoch import Vote
from lockstep.errors import LedgerConflict, PreflightRefused, TargetChanged, Terminal
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, Publication, Replaced, SinkEpoch
from lockstep.testing._crash_sweep import fork
from lockstep.testing._sealed_rows import SealedRows, sealed, table
from lockstep.testing._under_test import (
    SinkUnderTest,
    epoch,
    expect_proof,
    expect_replaced,
    expect_rows,
    expect_settled,
    opened,
    pending,
    prepare,
    publish,
    refused,
    sweep,
)

Behaviour = Callable[[SinkUnderTest], None]
BEHAVIOURS: list[Behaviour] = []  #: for every sink with a marker
UNREMEMBERED: list[Behaviour] = []  #: the subset that holds without a marker, too
VOTING_BEHAVIOURS: list[Behaviour] = []  #: for sinks that have the data before the decision
REPLACING_BEHAVIOURS: list[Behaviour] = []  #: for sinks in which an epoch can replace another one
CRASHES: list[Behaviour] = []  #: the subset that forks a process per crash point and takes seconds

ROWS = 1000
CRASH_ROWS = 500


def behaviours(kind: type[SinkUnderTest] | SinkUnderTest) -> list[Behaviour]:
    """Return the behaviours for a sink of this `guarantee`, `votes_with_data` and `replaceable`."""
    if kind.guarantee is Guarantee.NONE:
        return list(UNREMEMBERED)
    voting = VOTING_BEHAVIOURS if kind.votes_with_data else []
    return [*BEHAVIOURS, *voting, *(REPLACING_BEHAVIOURS if kind.replaceable else [])]


def every_sink(behaviour: Behaviour) -> Behaviour:
    UNREMEMBERED.append(behaviour)
    return every_sink_with_a_marker(behaviour)


def every_sink_with_a_marker(behaviour: Behaviour) -> Behaviour:
    BEHAVIOURS.append(behaviour)
    return behaviour


def every_voting_sink(behaviour: Behaviour) -> Behaviour:
    VOTING_BEHAVIOURS.append(behaviour)
    return behaviour


def every_sink_in_a_crash(behaviour: Behaviour) -> Behaviour:
    CRASHES.append(behaviour)
    return every_sink_with_a_marker(behaviour)


def every_voting_sink_in_a_crash(behaviour: Behaviour) -> Behaviour:
    CRASHES.append(behaviour)
    return every_voting_sink(behaviour)


def every_replacing_sink(behaviour: Behaviour) -> Behaviour:
    REPLACING_BEHAVIOURS.append(behaviour)
    return behaviour


def every_replacing_sink_in_a_crash(behaviour: Behaviour) -> Behaviour:
    CRASHES.append(behaviour)
    return every_replacing_sink(behaviour)


# --- visibility ------------------------------------------------------------------------------------------------------


@every_sink
def nothing_is_visible_before_publish(target: SinkUnderTest) -> None:
    prepare(target, epoch(), sealed(ROWS))
    expect_rows(target)
    with opened(target) as sink:
        assert sink.find_marker(1) is None, "there is a marker before the decision"


@every_sink
def publish_shows_exactly_the_rows(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    assert vote.rows == {"rows": ROWS}, vote
    assert publish(target, epoch(), vote, wal) in (Publication.COMMITTED, Publication.SENT)
    expect_rows(target, wal)
    expect_proof(target, epoch(), wal)
    expect_settled(target)


@every_sink
def epochs_add_up_and_are_told_apart(target: SinkUnderTest) -> None:
    first, second = sealed(ROWS), sealed(700, start=ROWS)
    later, earlier = epoch(1, token=10), epoch(2, token=11, manifest="b")
    votes = prepare(target, later, first), prepare(target, earlier, second)
    publish(target, earlier, votes[1], second)
    publish(target, later, votes[0], first)
    expect_rows(target, first, second)
    expect_proof(target, later, first)
    expect_proof(target, earlier, second)


@every_sink
def an_empty_epoch_goes_through(target: SinkUnderTest) -> None:
    wal = sealed(0)
    vote = prepare(target, epoch(), wal)
    assert vote.rows == {"rows": 0}, vote
    publish(target, epoch(), vote, wal)
    expect_rows(target)
    expect_proof(target, epoch(), wal)
    if target.guarantee is not Guarantee.NONE:
        assert publish(target, epoch(), vote, wal) is Publication.FOUND
    expect_settled(target)


@every_sink
def rows_that_are_twice_in_the_wal_are_kept_twice(target: SinkUnderTest) -> None:
    wal = [SealedRows(pa.concat_tables([table(50), table(50)]))]
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    expect_rows(target, wal)


# --- once ------------------------------------------------------------------------------------------------------------


@every_sink_with_a_marker
def publishing_twice_shows_the_rows_once(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    publish(target, epoch(), vote, wal)
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    expect_rows(target, wal)
    expect_settled(target)


@every_sink_with_a_marker
def threads_that_publish_at_once_show_the_rows_once(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    start, outcomes = threading.Barrier(4), []

    def run() -> None:
        start.wait()
        outcomes.append(publish(target, epoch(), vote, wal))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4, f"only {outcomes} came to an end"
    if target.guarantee is not Guarantee.AT_LEAST_ONCE:
        assert sum(outcome is not Publication.FOUND for outcome in outcomes) <= 1, outcomes
    expect_rows(target, wal)
    expect_settled(target)


@every_sink_with_a_marker
def processes_that_publish_at_once_show_the_rows_once(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    children = [fork(lambda: publish(target, epoch(), vote, wal)) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4, "a publisher failed"
    expect_rows(target, wal)
    expect_proof(target, epoch(), wal)
    expect_settled(target)


# --- the promise -----------------------------------------------------------------------------------------------------


@every_sink
def a_sink_declares_its_guarantee(target: SinkUnderTest) -> None:
    assert target.sink().guarantee is target.guarantee, "the suite runs for another guarantee than the sink's"
    assert Sink.from_spec(target.sink().spec()).guarantee is target.guarantee, "the plan forgets the guarantee"


# --- the vote --------------------------------------------------------------------------------------------------------


@every_sink
def a_sink_is_rebuilt_from_its_spec(target: SinkUnderTest) -> None:
    spec = target.sink().spec()
    again = Sink.from_spec(json.loads(json.dumps(spec)))
    assert type(again) is type(target.sink()) and again.spec() == spec
    assert again.name == target.sink().name and again.outputs == target.sink().outputs
    for secret in target.connections().values():
        assert secret not in json.dumps(spec), "the spec holds what a connection leads to"


@every_sink
def a_wal_with_other_rows_than_sealed_is_refused(target: SinkUnderTest) -> None:
    for claims in (ROWS - 1, ROWS + 1, 0):
        with refused(Terminal):
            prepare(target, epoch(), [SealedRows(table(ROWS), claims=claims)])
        sweep(target)
    expect_rows(target)
    expect_settled(target)


@every_sink_with_a_marker
def another_target_than_voted_is_refused(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    sink, context = target.elsewhere()
    with sink.opened(context) as elsewhere, refused(TargetChanged):
        elsewhere.publish(epoch(), vote, wal)
    with sink.opened(context) as elsewhere:
        assert elsewhere.find_marker(1) is None, "the other target was written to"
    publish(target, epoch(), vote, wal)
    expect_rows(target, wal)


@every_sink_with_a_marker
def a_marker_of_another_manifest_is_a_conflict(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    publish(target, epoch(), vote, wal)
    conflicting = epoch(token=11, manifest="b")
    own, decided = (f":{sink_epoch.token}:{sink_epoch.manifest_hash[:12]}" for sink_epoch in (epoch(), conflicting))
    handle = vote.handle and vote.handle.replace(own, decided)
    with opened(target) as sink, refused(LedgerConflict):
        sink.publish(conflicting, Vote(11, handle, vote.target_id, vote.rows), sealed(10))
    expect_rows(target, wal)


@every_sink
def a_larger_token_prepares_past_a_smaller_one_that_voted(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    prepare(target, epoch(token=10), wal)
    sink_epoch = epoch(token=20)
    vote = prepare(target, sink_epoch, wal)
    sweep(target, vote)
    publish(target, sink_epoch, vote, wal)
    expect_rows(target, wal)
    expect_settled(target)


# --- replacing another epoch ---------------------------------------------------------------------------------------


@every_sink
def a_sink_says_whether_its_epochs_can_be_replaced(target: SinkUnderTest) -> None:
    with opened(target) as sink:
        sink.preflight(None)
        if target.replaceable:
            sink.require_replaceable()
            return
        with refused(PreflightRefused):
            sink.require_replaceable()


@every_replacing_sink
def a_replacement_shows_its_rows_instead_of_the_replaced(target: SinkUnderTest) -> None:
    old, untouched, new = sealed(ROWS), sealed(300, start=ROWS), sealed(700, start=5 * ROWS)
    first = _published(target, epoch(1, token=10), old)
    _published(target, epoch(2, token=20, manifest="b"), untouched)
    sink_epoch = epoch(3, token=30, manifest="c", replaced=[first])
    vote = prepare(target, sink_epoch, new)
    expect_rows(target, old, untouched)
    assert publish(target, sink_epoch, vote, new) in (Publication.COMMITTED, Publication.SENT)
    expect_rows(target, untouched, new)
    expect_proof(target, sink_epoch, new)
    expect_replaced(target, first)
    assert publish(target, sink_epoch, vote, new) is Publication.FOUND
    expect_rows(target, untouched, new)
    expect_settled(target)


@every_replacing_sink
def a_replacement_is_replaced_in_its_turn(target: SinkUnderTest) -> None:
    wals = [sealed(100 + number, start=1000 * number) for number in range(3)]
    first = _published(target, epoch(1, token=10), wals[0])
    second = _published(target, epoch(2, token=20, manifest="b", replaced=[first]), wals[1])
    third = _published(target, epoch(3, token=30, manifest="c", replaced=[second]), wals[2])
    expect_rows(target, wals[2])
    expect_proof(target, third, wals[2])
    for replaced in (first, second):
        expect_replaced(target, replaced)


@every_replacing_sink
def one_epoch_replaces_several(target: SinkUnderTest) -> None:
    wals = [sealed(100 + number, start=1000 * number) for number in range(4)]
    tokens = {number: epoch(number, token=10 * number, manifest=f"{number}") for number in (1, 2, 3)}
    several = [_published(target, sink_epoch, wals[number]) for number, sink_epoch in tokens.items()]
    _published(target, epoch(4, token=40, manifest="d", replaced=several[1:]), wals[0])
    expect_rows(target, wals[1], wals[0])
    for replaced in several[1:]:
        expect_replaced(target, replaced)


@every_replacing_sink
def an_epoch_without_rows_replaces_and_is_replaced(target: SinkUnderTest) -> None:
    first = _published(target, epoch(1, token=10), sealed(ROWS))
    second = _published(target, epoch(2, token=20, manifest="b", replaced=[first]), sealed(0))
    expect_rows(target)
    _published(target, epoch(3, token=30, manifest="c", replaced=[second]), sealed(50))
    expect_rows(target, sealed(50))
    expect_settled(target)


@every_replacing_sink
def the_same_rows_replace_themselves(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    first = _published(target, epoch(1, token=10), wal)
    _published(target, epoch(2, token=20, manifest="b", replaced=[first]), wal)
    expect_rows(target, wal)
    expect_settled(target)


@every_replacing_sink
def a_late_publisher_of_a_replaced_epoch_finds_its_marker(target: SinkUnderTest) -> None:
    old, new = sealed(ROWS), sealed(300, start=ROWS)
    first = epoch(1, token=10)
    vote = prepare(target, first, old)
    publish(target, first, vote, old)
    _published(target, epoch(2, token=20, manifest="b", replaced=[first]), new)
    for token in (10, 30):
        assert publish(target, replace(first, token=token), vote, old) is Publication.FOUND
    expect_rows(target, new)
    expect_settled(target)


@every_replacing_sink
def an_epoch_that_is_not_shown_as_decided_is_not_replaced(target: SinkUnderTest) -> None:
    first, undecided = epoch(1, token=10), epoch(1, token=10, manifest="another life")
    with refused(LedgerConflict):
        prepare(target, epoch(2, token=20, manifest="b", replaced=[first]), sealed(50))
    sweep(target)
    _published(target, first, sealed(ROWS))
    with refused(LedgerConflict):
        prepare(target, epoch(2, token=21, manifest="b", replaced=[undecided]), sealed(50))
    sweep(target)
    expect_rows(target, sealed(ROWS))
    expect_settled(target)


@every_replacing_sink
def a_restored_target_shows_the_decided_epoch_and_no_earlier_generation(target: SinkUnderTest) -> None:
    """The target was restored to before the replaced epoch, and shows the generation before that one again."""
    old, untouched, new, late = (sealed(300 + number, start=ROWS * number) for number in range(4))
    first = _published(target, epoch(1, token=10), old)
    _published(target, epoch(2, token=20, manifest="b"), untouched)
    lost = epoch(3, token=30, manifest="c")
    lost_vote = prepare(target, lost, late)
    decided = epoch(4, token=40, manifest="d")
    vote = prepare(target, decided, new)
    if vote.handle is not None:
        target.lose(vote.handle)
    sink_epoch = replace(decided, replaced=(Replaced(lost.id, lost.manifest_hash),), generation=2)
    with refused(LedgerConflict):
        publish(target, replace(sink_epoch, earlier=(Replaced(first.id, "0" * 64),)), vote, new)
    expect_rows(target, old, untouched)
    sink_epoch = replace(sink_epoch, earlier=(Replaced(first.id, first.manifest_hash),))
    for _ in range(2):
        publish(target, sink_epoch, vote, new)
        expect_rows(target, untouched, new)
    expect_proof(target, sink_epoch, new)
    expect_replaced(target, first)
    publish(target, lost, lost_vote, late)  # by a process that was stopped since before
    expect_rows(target, untouched, new)
    _published(target, epoch(5, token=50, manifest="e", replaced=[sink_epoch]), old)
    expect_rows(target, untouched, old)


@every_replacing_sink
def processes_that_replace_at_once_show_the_rows_once(target: SinkUnderTest) -> None:
    new = sealed(300, start=ROWS)
    first = _published(target, epoch(1, token=10), sealed(ROWS))
    sink_epoch = epoch(2, token=20, manifest="b", replaced=[first])
    vote = prepare(target, sink_epoch, new)
    children = [fork(lambda: publish(target, sink_epoch, vote, new)) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4, "a publisher failed"
    expect_rows(target, new)
    expect_proof(target, sink_epoch, new)
    expect_replaced(target, first)
    expect_settled(target)


@every_replacing_sink
def a_reader_sees_the_old_rows_or_the_new_throughout(target: SinkUnderTest) -> None:
    wals = [sealed(200 + number, start=1000 * number) for number in range(6)]
    sink_epoch = _published(target, epoch(1, token=10), wals[0])
    for number, wal in enumerate(wals[1:], start=2):
        sink_epoch = epoch(number, token=10 * number, manifest=f"{number}", replaced=[sink_epoch])
        vote = prepare(target, sink_epoch, wal)
        publisher, seen = fork(partial(publish, target, sink_epoch, vote, wal)), list[int]()
        while publisher.is_running():
            seen.append(target.visible().num_rows)
        assert publisher.wait() == 0, "the publisher failed"
        assert set(seen) <= {198 + number, 199 + number}, f"a reader counted {seen}"
        assert seen == sorted(seen), f"a reader saw the new rows and then the old ones: {seen}"
        expect_rows(target, wal)


def _published(target: SinkUnderTest, sink_epoch: SinkEpoch, wal: Sequence[SealedRows]) -> SinkEpoch:
    publish(target, sink_epoch, prepare(target, sink_epoch, wal), wal)
    return sink_epoch


# --- abort -----------------------------------------------------------------------------------------------------------


@every_voting_sink
def abort_leaves_nothing_and_can_be_repeated(target: SinkUnderTest) -> None:
    prepare(target, epoch(), sealed(ROWS))
    (txn,) = pending(target)
    for _ in range(3):
        with opened(target) as sink:
            sink.abort(txn)
    assert pending(target) == []
    expect_rows(target)
    expect_settled(target)


@every_voting_sink
def abort_after_publish_removes_nothing(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    (txn,) = pending(target)
    publish(target, epoch(), vote, wal)
    with opened(target) as sink:
        sink.abort(txn)
    expect_rows(target, wal)
    expect_proof(target, epoch(), wal)
    assert publish(target, epoch(), vote, wal) is Publication.FOUND


@every_voting_sink
def an_older_execution_is_swept_without_harm_to_the_decided_one(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    prepare(target, epoch(token=10), wal)
    old = pending(target)
    vote = prepare(target, epoch(token=11), wal)
    with opened(target) as sink:
        for txn in old:
            sink.abort(txn)
    assert sweep(target, vote) == []
    publish(target, epoch(token=11), vote, wal)
    expect_rows(target, wal)


# --- ownership ------------------------------------------------------------------------------------------------------


@every_voting_sink
def pending_lists_its_own_and_nothing_foreign(target: SinkUnderTest) -> None:
    contexts = [
        target.context(pipeline="pipe"),
        target.context(pipeline="pipe2"),
        target.context(pipeline="pip"),
        target.context(deployment="99999999-2222-4333-8444-555555555555"),
    ]
    votes = [prepare(target, epoch(), sealed(10, start=1000 * n), c, shared=True) for n, c in enumerate(contexts)]
    for context, vote in zip(contexts, votes, strict=True):
        with opened(target, context, shared=True) as sink:
            assert [txn.handle for txn in sink.pending()] == [vote.handle]
    with opened(target, contexts[0], shared=True) as sink:
        for txn in sink.pending():
            sink.abort(txn)
    for context, vote in list(zip(contexts, votes, strict=True))[1:]:
        with opened(target, context, shared=True) as sink:
            assert [txn.handle for txn in sink.pending()] == [vote.handle], "a foreign transaction was touched"


@every_voting_sink
def a_pending_transaction_has_all_its_parts(target: SinkUnderTest) -> None:
    sink_epoch = epoch(7, token=12, manifest="c")
    vote = prepare(target, sink_epoch, sealed(5))
    (txn,) = pending(target)
    assert (txn.epoch, txn.token, txn.manifest, txn.handle) == (7, 12, sink_epoch.manifest_hash[:12], vote.handle)


# --- repair ----------------------------------------------------------------------------------------------------------


@every_voting_sink
def a_lost_handle_is_repaired_from_the_wal(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    target.lose(str(vote.handle))
    assert publish(target, epoch(), vote, wal) is Publication.REPAIRED
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    expect_rows(target, wal)
    expect_proof(target, epoch(), wal)
    expect_settled(target)


@every_voting_sink
def a_lost_handle_of_a_published_epoch_is_found(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    publish(target, epoch(), vote, wal)
    assert publish(target, replace(epoch(), token=99), vote, wal) is Publication.FOUND
    expect_rows(target, wal)


@every_voting_sink
def processes_that_repair_at_once_show_the_rows_once(target: SinkUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    target.lose(str(vote.handle))
    children = [fork(lambda: publish(target, epoch(), vote, wal)) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4, "a publisher failed"
    expect_rows(target, wal)
    sweep(target)
    expect_settled(target)


# --- crashes and zombies ---------------------------------------------------------------------------------------------


@every_sink_in_a_crash
def a_kill_at_any_point_loses_and_doubles_nothing(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.prepares_and_publishes, signal.SIGKILL)


@every_sink_in_a_crash
def a_zombie_released_at_any_point_loses_and_doubles_nothing(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.prepares_and_publishes, signal.SIGSTOP)


@every_voting_sink_in_a_crash
def a_kill_at_any_point_of_an_abort_leaves_nothing(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.prepares_and_aborts, signal.SIGKILL)


@every_voting_sink_in_a_crash
def a_zombie_that_aborts_takes_nothing_from_a_later_attempt(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.prepares_and_aborts, signal.SIGSTOP)


@every_voting_sink_in_a_crash
def a_kill_at_any_point_of_a_repair_loses_and_doubles_nothing(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.repairs_what_was_lost, signal.SIGKILL)


@every_voting_sink_in_a_crash
def a_zombie_that_repairs_doubles_nothing(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.repairs_what_was_lost, signal.SIGSTOP)


@every_replacing_sink_in_a_crash
def a_kill_at_any_point_of_a_replacement_shows_the_old_rows_or_the_new(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.prepares_and_publishes, signal.SIGKILL, crash_sweep.REPLACEMENT)


@every_replacing_sink_in_a_crash
def a_zombie_of_a_replacement_doubles_nothing(target: SinkUnderTest) -> None:
    _sweep(target, crash_sweep.prepares_and_publishes, signal.SIGSTOP, crash_sweep.REPLACEMENT)


@every_replacing_sink_in_a_crash
def a_zombie_of_a_replaced_epoch_brings_no_row_back(target: SinkUnderTest) -> None:
    story = crash_sweep.repairs_what_was_lost if target.votes_with_data else crash_sweep.prepares_and_publishes
    _sweep(target, story, signal.SIGSTOP, crash_sweep.REPLACED)


#: the steps that each sweep tries; a suite that has no time for all of them may set another function
select: crash_sweep.Select = crash_sweep.all_steps


def _sweep(
    target: SinkUnderTest,
    story: crash_sweep.Story,
    action: signal.Signals,
    plot: crash_sweep.Plot = crash_sweep.ALONE,
) -> None:
    steps = crash_sweep.sweep_every_step(target, story, crash_sweep.reached_points, action, CRASH_ROWS, select, plot)
    assert CrashPoint.PREPARE_AFTER_PRE_COMMIT in steps, f"only {steps} were reached"
