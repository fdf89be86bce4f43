"""Samples of successive seeds sampling a sweep, and a run says what it left out."""

from __future__ import annotations

from tests.sampling import Sampling

PLACES = list("abcdefghijk")
TURNS = 3


def test_each_place_is_in_the_share_of_one_turn() -> None:
    for seed in range(5):
        shares = [Sampling(seed).share(PLACES, turn, TURNS) for turn in range(TURNS)]
        assert sorted(place for share in shares for place in share) == PLACES


def test_each_turn_has_each_place_after_as_many_seeds_as_there_are_turns() -> None:
    for turn in range(TURNS):
        shares = [Sampling(seed).share(PLACES, turn, TURNS) for seed in range(17, 17 + TURNS)]
        assert sorted(place for share in shares for place in share) == PLACES


def test_samples_of_neighbouring_seeds_take_everything() -> None:
    samples = [Sampling(seed).sample(PLACES, 4) for seed in range(3)]
    assert [len(sample) for sample in samples] == [4, 4, 4]
    assert {place for sample in samples for place in sample} == set(PLACES)


def test_without_a_seed_everything_is_swept() -> None:
    sampling = Sampling()
    assert sampling.share(PLACES, 1, TURNS) == PLACES and sampling.sample(PLACES, 4) == PLACES
    assert (sampling.run, sampling.swept) == (22, 22)


def test_what_was_left_out_is_counted() -> None:
    sampling = Sampling(0)
    sampling.share(PLACES, 0, TURNS)
    assert (sampling.run, sampling.swept) == (4, 11)
