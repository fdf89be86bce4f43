"""Each aim is judged by figures of one run, and one that wasn't measured is never met."""

from __future__ import annotations

import pytest

from benchmarks.aims import AIMS, Aim, Kind


def measured(**seconds: list[float]) -> list[dict[str, object]]:
    return [{"group": "g", "way": way, "rows": 1000, "seconds": taken} for way, taken in seconds.items()]


def test_a_figure_is_the_median_of_the_rounds_and_met_on_the_right_side_of_its_bound(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Kind, float, float, bool]] = [
        (Kind.TIME, 2.0, 2.0, True),
        (Kind.TIME, 1.9, 2.0, False),
        (Kind.SPEED, 0.5, 0.5, True),
        (Kind.SPEED, 0.6, 0.5, False),
        (Kind.SECONDS, 4.0, 4.0, True),
        (Kind.SECONDS, 3.9, 4.0, False),
        (Kind.RATE, 250, 250, True),
        (Kind.RATE, 251, 250, False),
        (Kind.LATER, 98_000.0, 98_000.0, True),
        (Kind.LATER, 97_999.0, 98_000.0, False),
    ]
    for kind, bound, figure, met in cases:
        with subtests.test(kind=kind, bound=bound, figure=figure, met=met):
            aim = Aim("part", "g", "ours", kind, bound, "theirs" if kind in (Kind.TIME, Kind.SPEED, Kind.LATER) else "")
            found = aim.figure(measured(ours=[4.0, 3.0, 100.0], theirs=[2.0, 2.0, 2.0]))
            assert found == figure
            assert aim.is_met(figure) is met


def test_what_was_not_measured_or_failed_has_no_figure() -> None:
    aim = Aim("part", "g", "ours", Kind.TIME, 1.0, "theirs")
    assert aim.figure(measured(ours=[1.0])) is None
    assert aim.figure(measured(ours=[1.0], theirs=[])) is None
    assert aim.figure(measured(theirs=[1.0])) is None


def test_bytes_are_compared_as_bytes_whatever_the_seconds() -> None:
    aim = Aim("part", "g", "ours", Kind.BYTES, 1.02, "theirs")
    ours, theirs = measured(ours=[9.0], theirs=[1.0])
    found = aim.figure([{**ours, "bytes": [102, 102]}, {**theirs, "bytes": [100, 100]}])
    assert found == 1.02
    assert aim.is_met(found)


def test_no_aim_stands_twice() -> None:
    assert len({(aim.part, aim.group, aim.way, aim.of) for aim in AIMS}) == len(AIMS)
