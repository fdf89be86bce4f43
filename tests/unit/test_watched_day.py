"""What a reader saw of a day while it was restated is judged: old rows, then new ones, in each sink and in both."""

from __future__ import annotations

import pytest

from stack.day_reader import Sight, Watched
from stack.restatement import agreement, swapped

OLD, NEW = {1: 677}, {15: 842}
NOTHING: Sight = {}
Seen = list[tuple[Sight, int]]


def test_looks_that_saw_the_old_rows_and_then_the_new_ones_agree() -> None:
    check = swapped("table", [(OLD, 40), (NEW, 2)], (OLD, NEW))
    assert check.agrees
    assert (check.one_count, check.other_count) == (42, 42)


def test_a_look_at_neither_or_in_another_order_differs_and_says_what_was_seen(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Seen, str]] = [
        ([(OLD, 1), (NOTHING, 1), (NEW, 1)], "1 times {}"),
        ([(OLD, 1), (OLD | NEW, 2), (NEW, 1)], "2 times {1: 677, 15: 842}"),
        ([(OLD, 1), ({15: 500}, 3), (NEW, 1)], "3 times {15: 500}"),
        ([(OLD, 1), (NEW, 1), (OLD, 1), (NEW, 1)], "not from the old to the new"),
        ([(OLD, 9)], "not from the old to the new"),
        ([(NEW, 9)], "not from the old to the new"),
    ]
    for seen, what in cases:
        with subtests.test(seen=seen, what=what):
            check = swapped("table", seen, (OLD, NEW))
            assert not check.agrees
            assert any(what in one for one in check.differing)


def test_as_of_one_epoch_a_day_may_be_missing_from_both_sinks_between_the_two_swaps_and_never_from_one() -> None:
    both, order = (NOTHING, NOTHING), ((OLD, OLD), (NEW, NEW))
    assert swapped("cut", [((OLD, OLD), 5), (both, 1), ((NEW, NEW), 5)], order, between=both).agrees
    assert swapped("cut", [((OLD, OLD), 5), ((NEW, NEW), 5)], order, between=both).agrees
    for torn in ((OLD, NEW), (NEW, OLD), (OLD, NOTHING), (NOTHING, NEW)):
        assert not swapped("cut", [((OLD, OLD), 5), (torn, 1), ((NEW, NEW), 5)], order, between=both).agrees
    assert not swapped("cut", [((OLD, OLD), 5), ((NEW, NEW), 5), (both, 1)], order, between=both).agrees


def test_sinks_that_agree_with_each_other_and_not_with_what_was_sealed_differ() -> None:
    assert all(check.agrees for check in agreement("after", NEW, NEW, NEW))
    for table, files in ((OLD, NEW), (NEW, OLD), (OLD, OLD)):
        assert not any(check.agrees for check in agreement("after", table, files, NEW))


def test_what_the_reader_prints_is_what_it_saw() -> None:
    text = '{"table": [[{"1": 677}, 3]], "files": [], "cut": [[[{"1": 677}, {}], 2]], "apart": 4, "ended": 5}'
    assert Watched.from_json(text) == Watched([({1: 677}, 3)], [], [(({1: 677}, {}), 2)], 4, 5)
