"""Each aim is judged by figures of one run, and one that wasn't measured is never met."""

from __future__ import annotations

from benchmarks.aims import AIMS, Aim, Kind


def measured(**seconds: list[float]) -> list[dict[str, object]]:
    return [{"group": "g", "way": way, "rows": 1000, "seconds": taken} for way, taken in seconds.items()]


def test_a_figure_is_the_median_of_the_rounds_and_met_on_the_right_side_of_its_bound() -> None:
    rounds = measured(ours=[4.0, 3.0, 100.0], theirs=[2.0, 2.0, 2.0])
    beside = {Kind.TIME: (2.0, 1.9), Kind.SPEED: (0.5, 0.6), Kind.LATER: (98_000.0, 97_999.0)}
    alone = {Kind.SECONDS: (4.0, 3.9), Kind.RATE: (250, 251)}
    for kind, (figure, missed) in (beside | alone).items():
        aims = [Aim("part", "g", "ours", kind, bound, "theirs" if kind in beside else "") for bound in (figure, missed)]
        assert [aim.figure(rounds) for aim in aims] == [figure] * 2, kind
        assert [aim.is_met(figure) for aim in aims] == [True, False], kind


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
