"""The behaviour suite, run against FileSink on a mounted folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.files import _format as file_format
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from tests.sampling import Sampling
from tests.sinks.guarantees import expect_row
from tests.sinks.targets import FilesUnderTest

EVERYTHING = (*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING_BEHAVIOURS)
WITHOUT_CRASHES = [behaviour for behaviour in EVERYTHING if behaviour not in CRASHES]


@pytest.fixture
def stride() -> int:
    return 6


@pytest.fixture(autouse=True)
def several_groups_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)


@pytest.mark.fault("A10", "C14", "C23", "D15", "E13", "E14", "J5")
@pytest.mark.parametrize("behaviour", CRASHES, ids=lambda one: one.__name__)
def test_file_sink(tmp_path: Path, behaviour: Behaviour) -> None:
    behaviour(FilesUnderTest(tmp_path, "parquet"))


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_file_sink_without_a_crash(tmp_path: Path, format: str, sampling: Sampling, subtests: pytest.Subtests) -> None:
    for behaviour in WITHOUT_CRASHES if format == "parquet" else sampling.sample(WITHOUT_CRASHES, 3):
        folder = tmp_path / behaviour.__name__
        folder.mkdir()
        with subtests.test(behaviour.__name__):
            behaviour(FilesUnderTest(folder, format))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_file_sink(tmp_path: Path) -> None:
    expect_row("FileSink", FilesUnderTest(tmp_path, "parquet"))
