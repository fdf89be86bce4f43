"""Requests, results and errors that a stage task and its Spark job leave for each other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lockstep.epoch import SourceRange
from lockstep.errors import SourceChanged
from lockstep.wal.request import (
    REQUEST,
    RESULT,
    StageRequest,
    StageResult,
    read_error,
    read_request,
    write_error,
    write_result,
)
from lockstep.wal.staging import Staging

FOLDER = "11111111-2222-4333-8444-555555555555/flights/epoch=3/17"


def _request(folder: str) -> StageRequest:
    moment = datetime(2013, 1, 2, tzinfo=UTC)
    return StageRequest("", 3, 17, folder, ("rows",), {"numbers": SourceRange(None, {"day": 1})}, moment)


@pytest.mark.parametrize("name", ["plain", "two words", "50%20", "what?", "#1"])
def test_the_job_finds_its_request_whatever_the_staging_folder_is_called(tmp_path: Path, name: str) -> None:
    staging = Staging(str(tmp_path / name))
    staging.create(FOLDER)
    request = _request(staging.uri_of(FOLDER))
    staging.write_json(FOLDER, REQUEST, request.to_json())
    uri = staging.uri_of(f"{FOLDER}/{REQUEST}")
    assert read_request(uri) == request
    result = StageResult({"rows": 1}, {}, "v1")
    write_result(uri, result)
    assert StageResult.from_json(staging.read_json(FOLDER, RESULT)) == result
    write_error(uri, SourceChanged("it grew"))
    with pytest.raises(SourceChanged, match="it grew"):
        raise read_error(uri)


def test_the_job_reaches_s3_by_the_address_that_spark_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("lockstep.wal.request.Staging", lambda uri: asked.append(uri) or Staging("/nowhere"))
    with pytest.raises(Exception, match="missing"):
        read_request(Staging("s3://bucket/lockstep?region=eu-central-1").uri_of(f"{FOLDER}/{REQUEST}"))
    assert asked == [f"s3://bucket/lockstep/{FOLDER.rpartition('/')[0]}"]
