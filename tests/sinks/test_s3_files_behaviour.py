"""The behaviour suite, run against FileSink on a real S3 server; each story is also struck around each request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.testing._behaviour import CRASHES, Behaviour
from tests.clean_process import CleanProcess
from tests.sampling import Sampling
from tests.sinks.in_clean_process import (
    ACTIONS,
    STORIES,
    WITHOUT_CRASHES,
    behave,
    behave_in_crashes,
    die_around_each_change,
    tell_the_guarantee,
)
from tests.sinks.s3_target import ON_S3


@pytest.fixture(scope="module")
def clean() -> Iterator[CleanProcess]:
    with CleanProcess() as process:
        yield process


@pytest.mark.parametrize("behaviour", WITHOUT_CRASHES)
@pytest.mark.sample(3)  # of a mounted folder they are run whole
def test_file_sink_on_s3(clean: CleanProcess, s3_uri: str, behaviour: str) -> None:
    clean.call(behave, ON_S3, behaviour, s3_uri)


@pytest.mark.tier("all")
@pytest.mark.parametrize("behaviour", CRASHES, ids=lambda one: one.__name__)
@pytest.mark.sample(2)  # as above
def test_in_many_rounds_file_sink_on_s3_dies(
    clean: CleanProcess, s3_uri: str, behaviour: Behaviour, sampling: Sampling
) -> None:
    _count(sampling, clean.call(behave_in_crashes, ON_S3, behaviour.__name__, s3_uri, sampling.seed))


@pytest.mark.fault("E28")
@pytest.mark.tier("all")
@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.name)
@pytest.mark.parametrize(("story", "plot"), STORIES)
@pytest.mark.sample(3)
def test_in_many_rounds_a_process_dies_around_each_request(
    clean: CleanProcess, s3_uri: str, story: str, plot: str, action: int, sampling: Sampling
) -> None:
    _count(sampling, clean.call(die_around_each_change, ON_S3, story, plot, int(action), s3_uri, sampling.seed))


def _count(sampling: Sampling, found: tuple[int, int]) -> None:
    sampling.run, sampling.swept = found


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_file_sink_on_s3(clean: CleanProcess, s3_uri: str) -> None:
    clean.call(tell_the_guarantee, ON_S3, s3_uri)
