"""An epoch takes another one's place in one step, whoever publishes, and whoever comes too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.epoch import Vote
from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.sinks.values import Replaced, SinkEpoch
from lockstep.testing import sealed
from lockstep.testing._sealed_rows import OUTPUT
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, expect_settled, opened, prepare, publish
from tests.sinks.kinds import table_under_test
from tests.sinks.postgres_target import TableUnderTest


#: each database and each protocol once: what they do together is in the suite of behaviours
@pytest.fixture(params=["postgres two_phase", "mariadb write_ahead"])
def target(request: pytest.FixtureRequest) -> TableUnderTest:
    return table_under_test(request, request.param)


OLD, BESIDE = epoch(1), epoch(2, manifest="beside")
WRONG, OTHERS, RIGHT = sealed(40), sealed(30, start=1_000), sealed(50, start=2_000)


def in_place_of(
    old: SinkEpoch, *, id: int = 7, token: int = 70, manifest: str = "right", rows: int | None = None
) -> SinkEpoch:
    replaced = (Replaced(old.id, old.manifest_hash, {} if rows is None else {OUTPUT: rows}),)
    return replace(epoch(id, token=token, manifest=manifest), replaced=replaced, generation=old.generation + 1)


def show_wrong(target: TableUnderTest) -> Vote:
    publish(target, BESIDE, prepare(target, BESIDE, OTHERS), OTHERS)
    vote = prepare(target, OLD, WRONG)
    publish(target, OLD, vote, WRONG)
    expect_rows(target, WRONG, OTHERS)
    return vote


def test_an_older_execution_gives_way_with_what_it_has_deleted_whatever_the_epoch_column_is_called(
    target: TableUnderTest,
) -> None:
    target.arguments["epoch_column"] = "%s of 100 %"
    show_wrong(target)
    first, second = in_place_of(OLD, token=70), in_place_of(OLD, token=71)
    prepare(target, first, RIGHT)
    vote = prepare(target, second, RIGHT)
    publish(target, second, vote, RIGHT)
    expect_rows(target, RIGHT, OTHERS)
    expect_proof(target, OLD, sealed(0))
    expect_settled(target)


def test_rows_of_a_former_owner_with_the_same_number_are_never_taken(target: TableUnderTest) -> None:
    show_wrong(target)
    with_others = in_place_of(OLD, rows=39)  # one of the forty is somebody else's
    with pytest.raises(SinkRejected, match="40 rows have the number of epoch 1, which brought 39"):
        prepare(target, with_others, RIGHT)
    expect_rows(target, WRONG, OTHERS)
    expect_settled(target)
    new = in_place_of(OLD, rows=40, token=71)
    publish(target, new, prepare(target, new, RIGHT), RIGHT)
    expect_rows(target, RIGHT, OTHERS)


def test_rows_that_a_person_has_deleted_before_hold_nothing_up(target: TableUnderTest) -> None:
    show_wrong(target)
    target.execute("DELETE FROM rows WHERE lockstep_epoch = 1 AND id % 2 = 0")
    new = in_place_of(OLD, rows=40)
    publish(target, new, prepare(target, new, RIGHT), RIGHT)
    expect_rows(target, RIGHT, OTHERS)


def test_a_decided_replacement_is_shown_where_a_restored_target_never_showed_what_it_replaces(
    target: TableUnderTest,
) -> None:
    show_wrong(target)
    new = in_place_of(OLD, rows=40)
    vote = prepare(target, new, RIGHT)
    if vote.handle is not None:
        target.lose(vote.handle)
    target.execute("DELETE FROM rows WHERE lockstep_epoch = 1")
    target.execute("DELETE FROM lockstep_marker WHERE epoch = 1")
    publish(target, new, vote, RIGHT)
    expect_rows(target, RIGHT, OTHERS)


def test_tables_that_others_may_join_or_rows_elsewhere_refer_to_are_refused(target: TableUnderTest) -> None:
    show_wrong(target)
    with opened(target, shared=True) as sink, pytest.raises(PreflightRefused, match="others may write to its tables"):
        sink.require_replaceable()
    target.execute("ALTER TABLE rows ADD CONSTRAINT one_of_each UNIQUE (id, lockstep_epoch)")
    target.execute(
        "CREATE TABLE referring (id bigint, epoch bigint, CONSTRAINT to_them FOREIGN KEY (id, epoch) "
        "REFERENCES rows (id, lockstep_epoch) ON DELETE CASCADE)",
    )
    with opened(target) as sink, pytest.raises(PreflightRefused, match="foreign keys of"):
        sink.require_replaceable()


@pytest.mark.parametrize("target", ["postgres two_phase", "postgres write_ahead"], indirect=True)
def test_rows_that_the_table_keeps_are_never_shown_beside_those_that_take_their_place(target: TableUnderTest) -> None:
    show_wrong(target)
    target.execute("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    target.execute("CREATE TRIGGER keep BEFORE DELETE ON rows FOR EACH ROW EXECUTE FUNCTION keep()")
    for sealed_rows in (40, None):
        with pytest.raises(SinkRejected, match="rows of epoch 1 are there still"):
            prepare(target, in_place_of(OLD, rows=sealed_rows), RIGHT)
    expect_rows(target, WRONG, OTHERS)
