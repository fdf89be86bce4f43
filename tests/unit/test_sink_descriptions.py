"""A sink's description, as a frozen dataclass: what stands in the plan, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lockstep.errors import InvalidPipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext


@dataclass(frozen=True)
class FolderSink(Sink):
    name: str
    output: str
    path: str
    columns: tuple[str, ...] = ()
    formats: Mapping[str, Any] = field(default_factory=dict)
    tries: int = 3

    operational: ClassVar = frozenset({"tries"})
    local_paths: ClassVar = frozenset({"path"})

    def open(self, context: SinkContext) -> OpenSink:
        raise NotImplementedError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    return tmp_path


def test_a_dataclass_is_a_whole_description(home: Path) -> None:
    sink = FolderSink("folder", "rows", path="out", columns=("a", "b"), formats={"a": {"width": 3}}, tries=5)
    assert sink.outputs == ("rows",)
    assert sink.spec() == {
        "type": f"{__name__}:FolderSink",
        "arguments": {
            "name": "folder",
            "output": "rows",
            "path": str(home / "out"),
            "columns": ["a", "b"],
            "formats": {"a": {"width": 3}},
        },
    }
    assert sink.settings() == {"tries": 5}


def test_any_process_makes_it_again_from_the_plan(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = json.loads(json.dumps(FolderSink("folder", "rows", path="out", tries=5).spec()))
    monkeypatch.setenv("LOCKSTEP_HOME", "/elsewhere")
    again = Sink.from_spec({**spec, "arguments": {**spec["arguments"], "tries": 4}}, {"tries": 7})
    assert again.spec() == spec
    assert (again.settings(), dict(again.planned)) == ({"tries": 7}, {"tries": 4})


def test_a_description_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        FolderSink("folder", "rows", path="/out").path = "/else"  # type: ignore[misc]


def test_a_name_that_could_not_stand_in_a_handle_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="sink name 'two words'"):
        FolderSink("two words", "rows", path="/out")


def test_an_argument_that_is_no_json_is_refused_by_name() -> None:
    sink = FolderSink("folder", "rows", path="/out", formats={"a": object()})
    with pytest.raises(InvalidPipeline, match="sink folder: formats is dict, which can't stand in a plan"):
        sink.spec()


def test_what_is_no_dataclass_says_its_arguments_itself() -> None:
    class Bare(Sink):
        def open(self, context: SinkContext) -> OpenSink:
            raise NotImplementedError

    with pytest.raises(NotImplementedError, match="Bare is no dataclass"):
        Bare("bare").arguments()


# --- plans of older versions ------------------------------------------------------------------------------------------

RECORDS = {"name": "s", "output": "rows", "committer": "/sent", "max_record_bytes": 9, "validator": "m:f"}
OPERATIONAL = {"records_per_request": 5, "bytes_per_request": 6, "requests_at_once": 1, "tries": 2, "timeout": 3.0}
FORMER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("lockstep.sinks.files.sink:FileSink", {"format": "csv", "shared": False, "path": "/out"}, {}),
    (
        "lockstep.sinks.files.sink:FileSink",
        {
            "format": "parquet",
            "shared": True,
            "path": "/out",
            "success": "_SUCCESS",
            "max_buckets": 9,
            "max_rows_per_file": 10,
            "max_bytes_per_file": 11,
            "bucket": {"by": "time", "column": "at", "folders": "dt=%Y"},
        },
        {},
    ),
    ("lockstep.sinks.append_only.stdout:StdoutSink", {"guarantee": "none"}, {}),
    ("lockstep.sinks.append_only.stdout:StdoutSink", RECORDS, {}),
    ("lockstep.sinks.append_only.tcp:TcpSink", {**RECORDS, "connection": "c"}, {"timeout": 9.0}),
    ("lockstep.sinks.append_only.http:HttpSink", {**RECORDS, "connection": "c", "key_header": "X-Key"}, OPERATIONAL),
]


def test_a_plan_that_an_older_version_froze_is_today_s(subtests: pytest.Subtests) -> None:
    """Or each epoch that was planned before an upgrade would be planned "with other sinks"."""
    for type, arguments, settings in FORMER:
        with subtests.test(type=type, arguments=arguments, settings=settings):
            arguments = {"name": "s", "output": "rows", **arguments}
            sink = Sink.from_spec({"type": type, "arguments": arguments}, settings)
            assert sink.spec() == {"type": f"lockstep.sinks:{type.partition(':')[2]}", "arguments": arguments}
            assert sink.settings() == settings
