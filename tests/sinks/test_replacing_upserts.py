"""Where newer rows replace older ones, an epoch takes another one's place without touching what later ranges wrote."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from lockstep.errors import PreflightRefused, PublishBlocked, SinkRejected
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, Replaced
from tests.sinks.upserting import SCHEMA, Row, Sealed, UpsertedDatabase, place, placed, protocol, row, sealed

__all__ = ["place", "placed", "protocol"]


def instead_of(old: Sealed, id: int, *rows: Row) -> Sealed:
    """An epoch of the same day as `old`, which it replaces."""
    gone = Replaced(old.at.id, old.at.manifest_hash, {"rows": len(old.rows)})
    at = replace(sealed(id).at, interval=old.at.interval, replaced=(gone,), generation=old.at.generation + 1)
    return Sealed(replace(at, root=old.at.id if old.at.root is None else old.at.root), rows)


def living(place: UpsertedDatabase) -> dict[int, str]:
    return {key: name for key, (name, _, deleted) in place.shown().items() if not deleted}


# --- the cases of docs/sinks/postgres.md -----------------------------------------------------------------------------

BEFORE = sealed(2, row(5, "2"), row(7, "2"), row(11, "2"), day=2)
OLD = sealed(3, *(row(key, "3") for key in (1, 2, 3, 4, 5, 6)), row(9, "3", gone=True), row(10, "3", gone=True), day=3)
LATER = sealed(4, row(2, "4"), row(3, "4"), day=4)
DELETING = sealed(5, row(4, "5", gone=True), day=5)
NEW = instead_of(OLD, 6, *(row(key, "new") for key in (3, 4, 6, 7, 8, 9)))

STAYS = {2: "4", 3: "4", 11: "2"}
BROUGHT = {6: "new", 7: "new", 8: "new", 9: "new"}


def show_the_old(place: UpsertedDatabase, protocol: ProtocolName, **arguments: Any) -> None:
    for one in (BEFORE, OLD, LATER, DELETING):
        place.send(place.sink(protocol, **arguments), one)


@pytest.mark.fault("N3")
@pytest.mark.parametrize(
    ("placed", "arguments"),
    [
        ("postgres two_phase", {}),
        ("postgres write_ahead", {"order": "epoch"}),
        ("mariadb two_phase", {"order": "epoch"}),
        ("mariadb write_ahead", {}),
    ],
    indirect=["placed"],
)
def test_of_each_key_the_row_of_the_latest_range_stays(
    place: UpsertedDatabase, protocol: ProtocolName, arguments: dict[str, Any]
) -> None:
    given = place.sink(protocol, **arguments, on_missing="delete")
    show_the_old(place, protocol, **arguments)
    before = place.shown()
    vote = place.prepare(given, NEW)
    assert place.shown() == before, "nothing is visible before the decision"
    for expected in (Publication.COMMITTED if protocol == "two_phase" else Publication.SENT, Publication.FOUND):
        assert place.publish(given, NEW, vote) is expected
        assert living(place) == STAYS | BROUGHT
        assert {key for key, (*_, deleted) in place.shown().items() if deleted} == {1, 4, 5, 10}
    assert place.left_over() == []


def test_rows_that_nothing_takes_the_place_of_stay_where_that_is_asked_for(
    place: UpsertedDatabase, protocol: ProtocolName
) -> None:
    show_the_old(place, protocol)
    place.send(place.sink(protocol, on_missing="keep"), NEW)
    assert living(place) == STAYS | BROUGHT | {1: "3", 5: "3"}


@pytest.mark.fault("N3")
def test_unless_something_else_is_asked_for_the_vote_is_refused_and_tells_how_many(
    place: UpsertedDatabase, protocol: ProtocolName
) -> None:
    show_the_old(place, protocol)
    before, given = place.shown(), place.sink(protocol)
    told = r"sink warehouse: .*table .*target: 3 rows of epoch 3 have keys that epoch 6, .* on_missing='delete'"
    place.expect_refusal(SinkRejected, told, given, NEW)
    assert (place.shown(), place.left_over()) == (before, [])
    whole = Sealed(NEW.at, [*NEW.rows, row(1, "new"), row(5, "new"), row(10, "new")])
    place.send(given, whole)
    assert living(place) == STAYS | BROUGHT | {1: "new", 5: "new", 10: "new"}


def test_a_table_without_tombstones_has_the_rows_deleted(place: UpsertedDatabase, protocol: ProtocolName) -> None:
    given = place.sink(protocol, deleted=None, on_missing="delete")
    old = sealed(1, row(1, "old"), row(2, "old"), row(3, "old"), day=1)
    for one in (old, sealed(2, row(2, "later"), day=2), instead_of(old, 3, row(3, "new"))):
        place.send(given, one)
    assert place.execute("SELECT id, name FROM target ORDER BY id") == [(2, "later"), (3, "new")]
    with given.opened(place.context()) as live:
        live.require_replaceable()
        assert live.missing_keys("rows") == 0
        assert sum(map(len, live.read_remaining(1, "rows", SCHEMA))) == 0
        assert sum(map(len, live.read(3, "rows", SCHEMA))) == 1


# --- any order, any way ----------------------------------------------------------------------------------------------


@pytest.mark.fault("N3")
@pytest.mark.parametrize(
    ("placed", "seed"), [("postgres two_phase", 0), ("mariadb write_ahead", 1)], indirect=["placed"]
)
def test_in_whatever_order_generations_of_many_days_are_published_the_table_is_that_of_their_days(
    place: UpsertedDatabase, protocol: ProtocolName, seed: int
) -> None:
    luck, given = random.Random(seed), place.sink(protocol, on_missing="delete")
    numbers, expected = iter(range(1, 100)), dict[int, tuple[Any, ...]]()
    lives: list[list[Sealed]] = []
    for day in range(5):
        for life in range(luck.randrange(1, 4)):
            rows = [row(key, f"{day}.{life}", day) for key in luck.sample(range(12), luck.randrange(0, 8))]
            if life == 0:
                lives.append([sealed(next(numbers), *rows, day=day)])
            else:
                for key, *rest in lives[-1][-1].rows:  # what has no successor is a tombstone
                    expected[key] = (*rest[:2], True)
                lives[-1].append(instead_of(lives[-1][-1], next(numbers), *rows))
            expected |= {key: tuple(rest) for key, *rest in rows}
    waiting = [iter(one) for one in lives]
    while waiting:
        at = luck.randrange(len(waiting))
        if (one := next(waiting[at], None)) is None:
            waiting.pop(at)
        else:
            place.send(given, one)
    assert place.shown() == expected


def test_a_target_restored_from_before_it_showed_the_old_is_shown_the_new(
    place: UpsertedDatabase, protocol: ProtocolName
) -> None:
    show_the_old(place, protocol)
    given = place.sink(protocol)
    whole = Sealed(NEW.at, [*NEW.rows, *(row(key, "new") for key in (1, 5, 10))])
    vote = place.prepare(given, whole)
    if vote.handle is not None:
        place.lose(vote.handle)
    for table, column in (("target", "lockstep_epoch"), ("lockstep_marker", "epoch"), ("lockstep_keys", "epoch")):
        place.execute(f"DELETE FROM {table} WHERE {column} = 3")
    place.publish(given, whole, vote)
    shown = dict(place.execute("SELECT id, name FROM target WHERE NOT lockstep_deleted"))
    assert shown == STAYS | BROUGHT | {1: "new", 5: "new", 10: "new"}


@pytest.mark.fault("P12")
@pytest.mark.parametrize("decided", [False, True])
def test_rows_of_an_epoch_whose_marker_alone_is_gone_are_taken_away(
    place: UpsertedDatabase, protocol: ProtocolName, decided: bool
) -> None:
    show_the_old(place, protocol)
    given, new = place.sink(protocol, on_missing="delete"), Sealed(replace(NEW.at, lacking=frozenset({3})), NEW.rows)
    vote = place.prepare(given, new) if decided else None
    if vote is not None and vote.handle is not None:
        place.lose(vote.handle)
    place.execute("DELETE FROM lockstep_marker WHERE epoch = 3")
    place.publish(given, new, vote or place.prepare(given, new))
    assert living(place) == STAYS | BROUGHT


def test_after_the_decision_rows_that_came_back_by_hand_wait_for_a_word(place: UpsertedDatabase) -> None:
    """As in a target that was restored to between two epochs."""
    show_the_old(place, "write_ahead")
    given = place.sink()
    whole = Sealed(NEW.at, [*NEW.rows, *(row(key, "new") for key in (1, 5, 10))])
    vote = place.prepare(given, whole)
    [(order,)] = place.execute("SELECT max(lockstep_order) FROM target WHERE lockstep_epoch = 3")
    place.execute(f"UPDATE target SET lockstep_epoch = 3, lockstep_order = {order}, name = '3' WHERE id = 2")
    before = place.shown()
    with pytest.raises(PublishBlocked, match="1 rows of epoch 3 have keys that epoch 6"):
        place.publish(given, whole, vote)
    assert place.shown() == before
    place.publish(place.sink(on_missing="delete"), whole, vote)
    assert 2 not in living(place)


# --- refused where nobody can tell -----------------------------------------------------------------------------------


#: what a person has done, how it is undone, and what is told
BY_HAND = [
    (
        "UPDATE target SET lockstep_epoch = 0 WHERE id = 1",
        "UPDATE target SET lockstep_epoch = 3 WHERE id = 1",
        r"1 rows have the order of epoch 3 .*\(0\).*column added",
    ),
    (
        "UPDATE target SET lockstep_order = lockstep_order + 1 WHERE id = 1",
        "UPDATE target SET lockstep_order = lockstep_order - 1 WHERE id = 1",
        "have a larger order than epoch 6",
    ),
    (
        "UPDATE target SET lockstep_epoch = 3 WHERE id IN (2, 3, 4, 11)",
        "UPDATE target SET lockstep_epoch = CASE id WHEN 4 THEN 5 WHEN 11 THEN 2 ELSE 4 END WHERE id IN (2, 3, 4, 11)",
        "9 rows have the number of epoch 3, .* 8",
    ),
    ("DELETE FROM lockstep_keys WHERE epoch = 3", "", "epoch 3 has recorded no keys for this table"),
]


@pytest.mark.fault("N3")
def test_rows_whose_epoch_nobody_can_tell_are_never_taken(
    place: UpsertedDatabase, protocol: ProtocolName, subtests: pytest.Subtests
) -> None:
    show_the_old(place, protocol)
    for by_hand, undoing, told in BY_HAND:
        with subtests.test(by_hand):
            place.execute(by_hand)
            before = place.execute("SELECT * FROM target ORDER BY id")
            place.expect_refusal(SinkRejected, told, place.sink(protocol, on_missing="delete"), NEW)
            assert place.execute("SELECT * FROM target ORDER BY id") == before
            assert place.left_over() == []
            if undoing:
                place.execute(undoing)


def test_where_a_column_is_the_order_nothing_is_replaced(place: UpsertedDatabase) -> None:
    given = place.sink(order="column:version")
    place.send(given, OLD)
    with given.opened(place.context()) as live, pytest.raises(PreflightRefused, match="chosen by column version"):
        live.require_replaceable()
