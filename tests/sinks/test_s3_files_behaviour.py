"""The behaviour suite, run against FileSink on a real S3 server; each story is also struck around each request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from tests.clean_process import CleanProcess
from tests.cover import Cover
from tests.sinks.s3_target import ACTIONS, behave, behave_in_crashes, die_around_each_change, tell_the_guarantee


@pytest.fixture(scope="module")
def clean() -> Iterator[CleanProcess]:
    with CleanProcess() as process:
        yield process


EVERYTHING = (*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING_BEHAVIOURS)
WITHOUT_CRASHES = [one.__name__ for one in EVERYTHING if one not in CRASHES]
STORIES = [
    ("prepares_and_publishes", "ALONE"),
    ("prepares_and_aborts", "ALONE"),
    ("repairs_what_was_lost", "ALONE"),
    ("repairs_what_was_lost", "REPLACEMENT"),
    ("repairs_what_was_lost", "REPLACED"),
]


@pytest.mark.parametrize("behaviour", WITHOUT_CRASHES)
@pytest.mark.cover(4)  # of a mounted folder they are run whole
def test_file_sink_on_s3(clean: CleanProcess, s3_uri: str, behaviour: str) -> None:
    clean.call(behave, behaviour, s3_uri)


@pytest.mark.parametrize("behaviour", CRASHES, ids=lambda one: one.__name__)
def test_in_many_rounds_file_sink_on_s3_dies(
    clean: CleanProcess, s3_uri: str, behaviour: Behaviour, cover: Cover
) -> None:
    _count(cover, clean.call(behave_in_crashes, behaviour.__name__, s3_uri, cover.seed))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.name)
@pytest.mark.parametrize(("story", "plot"), STORIES)
def test_in_many_rounds_a_process_dies_around_each_request(
    clean: CleanProcess, s3_uri: str, story: str, plot: str, action: int, cover: Cover
) -> None:
    _count(cover, clean.call(die_around_each_change, story, plot, int(action), s3_uri, cover.seed))


def _count(cover: Cover, found: tuple[int, int]) -> None:
    cover.run, cover.swept = found


def test_the_page_of_guarantees_tells_the_truth_about_file_sink_on_s3(clean: CleanProcess, s3_uri: str) -> None:
    clean.call(tell_the_guarantee, s3_uri)
