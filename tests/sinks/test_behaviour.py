"""The behaviour suite, run against FileSink on a mounted folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.files import _format as file_format
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from lockstep.testing._under_test import SinkUnderTest
from tests.sinks.guarantees import expect_row
from tests.sinks.targets import FilesUnderTest

EVERYTHING = (*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING_BEHAVIOURS)
WITHOUT_CRASHES = [behaviour for behaviour in EVERYTHING if behaviour not in CRASHES]


@pytest.fixture
def stride() -> int:
    return 6


@pytest.fixture
def files_under_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> SinkUnderTest:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)  # several groups a file
    return FilesUnderTest(tmp_path, request.param)


@pytest.mark.parametrize("behaviour", EVERYTHING, ids=lambda one: one.__name__)
@pytest.mark.parametrize("files_under_test", ["parquet"], indirect=True)
def test_file_sink(files_under_test: SinkUnderTest, behaviour: Behaviour) -> None:
    behaviour(files_under_test)


@pytest.mark.parametrize("behaviour", WITHOUT_CRASHES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("files_under_test", ["csv", "json"], indirect=True)
@pytest.mark.sample(6)  # of parquet they are run whole
def test_file_sink_of_text(files_under_test: SinkUnderTest, behaviour: Behaviour) -> None:
    behaviour(files_under_test)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_file_sink(tmp_path: Path) -> None:
    expect_row("FileSink", FilesUnderTest(tmp_path, "parquet"))
