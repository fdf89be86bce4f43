"""FileSink with buckets: which folder a row goes to, what comes back, what readers see, what is refused."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from lockstep.errors import InvalidPipeline, OutcomeUnknown, PreflightRefused, SinkRejected
from lockstep.sinks.base import Sink
from lockstep.sinks.durable_file import SYNCS
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files import _format as file_format
from lockstep.sinks.files import _layout as file_layout
from lockstep.sinks.files._format import FileFormat
from lockstep.sinks.files.buckets import BY_DAY, NULL, Buckets, ByColumns, ByFunction, ByTime
from lockstep.sinks.values import Publication, SinkContext, SinkEpoch
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._crash_sweep import fork
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, sealed, table
from lockstep.testing._under_test import (
    DEPLOYMENT,
    epoch,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
)
from lockstep.wal.digest import digest_batches
from tests.sinks.guarantees import expect_row
from tests.sinks.targets import FilesUnderTest
from tests.sinks.test_file_sink import WITHOUT_CRASHES
from tests.sinks.test_file_sink_faults import effects

PLANNED = datetime(2013, 1, 2, tzinfo=UTC)


def by_thirds(batch: pa.RecordBatch) -> pa.Array:
    return pa.array([f"third={number.as_py() % 3}/x" for number in batch["id"]])


ASSIGNERS: dict[str, Buckets] = {
    "columns": ByColumns("ok"),
    "time": ByTime("at"),
    "planned": ByTime(),
    "function": ByFunction(f"{__name__}:by_thirds"),
}


@pytest.fixture
def stride() -> int:
    return 8


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)


@pytest.mark.parametrize("behaviour", WITHOUT_CRASHES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("bucket", ASSIGNERS.values(), ids=ASSIGNERS)
@pytest.mark.sample(9)  # without buckets they are run whole
def test_bucketed_file_sink(memory: Path, bucket: Buckets, behaviour: Behaviour) -> None:
    behaviour(FilesUnderTest(memory, "parquet", bucket=bucket, success="_SUCCESS-{epoch}"))


@pytest.mark.parametrize("behaviour", CRASHES, ids=lambda one: one.__name__)
@pytest.mark.sample(2)  # as above
def test_bucketed_file_sink_in_a_crash(memory: Path, behaviour: Behaviour) -> None:
    behaviour(FilesUnderTest(memory, "parquet", bucket=ByColumns("ok"), success="_SUCCESS"))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(memory: Path) -> None:
    expect_row("FileSink, buckets", FilesUnderTest(memory, "parquet", bucket=ByColumns("ok"), success="_SUCCESS"))


def folders_of(bucket: Buckets, rows: pa.Table, planned: datetime = PLANNED) -> list[str]:
    rows = rows.append_column("rest", pa.nulls(rows.num_rows, pa.int8()))
    assert bucket.misfits(rows.schema) == []
    found = []
    for batch in rows.to_batches(3):
        assigned = bucket.assign(batch, planned)
        found += [assigned.buckets[code] for code in assigned.codes]
    return found


def test_event_time_goes_by_the_hour_in_utc_or_as_asked_for_or_by_the_time_of_planning() -> None:
    at = [datetime(2013, 1, 1, 4, 59, 59, 999999), datetime(2013, 1, 1, 5), None, datetime(1969, 12, 31, 23, 1)]
    utc = pa.array(at, pa.timestamp("us", "UTC"))
    expected = ["dt=2013-01-01/hour=04", "dt=2013-01-01/hour=05", f"dt={NULL}/hour={NULL}", "dt=1969-12-31/hour=23"]
    for times in (utc, utc.cast(pa.timestamp("us", "Asia/Tokyo")), pa.array(at, pa.timestamp("us"))):
        assert folders_of(ByTime("at"), pa.table({"at": times})) == expected
    days = pa.table({"day": pa.array([date(2013, 2, 3), None, date(1, 1, 1)])})
    assert folders_of(ByTime("day", BY_DAY), days) == ["dt=2013-02-03", f"dt={NULL}", "dt=0001-01-01"]
    moments = pa.table({"at": pa.array([datetime(2013, 2, 3, 4, 5, 59)])})
    assert folders_of(ByTime("at", "%Y/day-%j/%H.%M"), moments) == ["2013/day-034/04.05"]
    planned = datetime(2013, 1, 2, 3, 4, tzinfo=UTC)
    assert set(folders_of(ByTime(), table(5), planned)) == {"dt=2013-01-02/hour=03"}


def test_rows_without_a_time_have_a_folder_that_readers_do_not_skip(memory: Path) -> None:
    rows = pa.table({"at": pa.array([datetime(2013, 2, 3), None]), "id": [1, 2]})
    assert folders_of(ByTime("at", "by/%Y/day=%j/x-%H"), rows) == ["by/2013/day=034/x-00", f"by/null/day={NULL}/null"]
    sink = FileSink("files", output=OUTPUT, path=str(memory / "out"), bucket=ByTime("at", "%Y/%m"))
    publish_by(sink, rows)
    assert sorted(ds.dataset(memory / "out").to_table()["id"].to_pylist()) == [1, 2]


def test_an_attempt_or_a_repair_gives_the_folders_of_the_plan(memory: Path) -> None:
    target = FilesUnderTest(memory, "parquet", bucket=ByTime())
    vote = prepare(target, epoch(), sealed(10))
    target.lose(str(vote.handle))
    assert publish(target, epoch(token=99), vote, sealed(10)) is Publication.REPAIRED
    assert shown(target) == ["dt=2013-01-02/hour=00/files-epoch=1-rows-00000.parquet"]


AWKWARD = ["a/b", "..", "x=y", "50%", "%41", "ünï ✓", " ", "c:\\d", "{e}", '"', "tab\t", "NULL", "007", None]


def test_values_of_columns_make_hive_s_folders() -> None:
    names = folders_of(ByColumns("text"), pa.table({"text": AWKWARD}))
    assert names[:5] == ["text=a%2Fb", "text=..", "text=x%3Dy", "text=50%25", "text=%2541"]
    assert names[-1] == f"text={NULL}" and len(set(names)) == len(AWKWARD)
    rows = pa.table(
        {"n": pa.array([-5, None], pa.int8()), "ok": [True, False], "day": [date(2013, 1, 1), None], "id": [1, 2]}
    )
    assert folders_of(ByColumns("n", "ok", "day"), rows) == [
        "n=-5/ok=true/day=2013-01-01",
        f"n={NULL}/ok=false/day={NULL}",
    ]


def shown(target: FilesUnderTest) -> list[str]:
    return [str(Path(path).relative_to(target.path)) for path in files(str(target.path))]


def told(target: FilesUnderTest) -> list[str]:
    every = target.path.rglob("*")
    return sorted(
        str(path.relative_to(target.path)) for path in every if path.is_file() and ".lockstep" not in str(path)
    )


def publish_all(target: FilesUnderTest, wal: list[SealedRows], at: SinkEpoch | None = None) -> None:
    at = at or epoch()
    publish(target, at, prepare(target, at, wal), wal)


def test_final_names_carry_bucket_sink_epoch_and_number_and_success_is_told_beside_them(memory: Path) -> None:
    target = FilesUnderTest(memory, "parquet", bucket=ByColumns("ok"), success="_SUCCESS-{epoch}")
    publish_all(target, sealed(30), epoch(3, token=77))
    folders = ["ok=__HIVE_DEFAULT_PARTITION__", "ok=false", "ok=true"]
    names = [f"{folder}/files-epoch=3-rows-{number:05d}.parquet" for number, folder in enumerate(folders)]
    assert shown(target) == names
    assert told(target) == sorted([*names, *(f"{folder}/_SUCCESS-3" for folder in folders)])
    assert (target.path / "ok=true/_SUCCESS-3").samefile(target.path / ".lockstep/epoch=3.json")
    (memory / "plain").mkdir()
    plain = FilesUnderTest(memory / "plain", "parquet", success="_SUCCESS")
    publish_all(plain, sealed(0))
    assert told(plain) == ["_SUCCESS"]


@pytest.mark.parametrize("bucket", ASSIGNERS.values(), ids=ASSIGNERS)
@pytest.mark.sample(2)
def test_the_same_rows_give_the_same_files_however_they_are_cut_and_spilled(
    memory: Path, bucket: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for number, (batch_rows, memory_bytes) in enumerate(((1000, 1 << 30), (77, 1 << 30), (77, 10_000), (1000, 1))):
        monkeypatch.setattr(file_layout, "SORT_BYTES", memory_bytes)
        target = FilesUnderTest(memory / str(number), "parquet", bucket=bucket)
        target.folder.mkdir()
        publish_all(target, [SealedRows(table(3000), batch_rows)])
        expect_rows(target, sealed(3000))
        expect_settled(target)
        found.append([(name, (target.path / name).read_bytes()) for name in shown(target)])
    assert found[0] == found[1] == found[2] == found[3]


def publish_by(sink: Sink, rows: pa.Table) -> str:
    """Publish an epoch of these rows; the digest of what is read back."""
    wal = [SealedRows(rows)]
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
        live.preflight({OUTPUT: rows.schema})
        live.publish(epoch(), live.prepare(epoch(), wal), wal)
        return digest_batches(rows.schema, live.read(1, OUTPUT, rows.schema)).hexdigest()


def test_many_buckets_need_few_open_files(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": range(3000), "many": [str(n % 300) for n in range(3000)]})
    monkeypatch.setattr(file_layout, "SORT_BYTES", 5000)
    sink = FileSink("files", output=OUTPUT, path=str(memory / "out"), bucket=ByColumns("many"))

    def run() -> None:
        opened = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        limit = (
            opened + 1 + 2 + 2 * SYNCS + 8
        )  # one file each is written, spilled and read; few are made durable at once
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        assert publish_by(sink, rows) == digest_batches(rows.schema, rows.to_batches()).hexdigest()

    assert fork(run).wait() == 0
    assert len(files(str(memory / "out"))) == 300


EVERY_NAME = pa.table(
    {
        "text": [*AWKWARD, *(["x"] * 4)],
        "n": pa.array([*range(len(AWKWARD)), -(2**63), 2**63 - 1, None, 0], pa.int64()),
        "ok": [None, True, False] * 6,
        "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None] * 6),
        "line": [f"line {n}" for n in range(18)],
    }
)


def test_columns_that_stand_in_folder_names_come_back_in_every_format(memory: Path) -> None:
    sent = digest_batches(EVERY_NAME.schema, EVERY_NAME.to_batches()).hexdigest()
    for format in FileFormat:
        bucket = ByColumns("text", "n", "ok", "day")
        sink = FileSink("files", output=OUTPUT, path=str(memory / format), format=str(format), bucket=bucket)
        assert publish_by(sink, EVERY_NAME) == sent, format


def test_the_examples_of_the_page_run(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/sinks/files.md").read_text()
    sink, function, reading = (
        next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if word in block)
        for word in ("ByTime", "def area", "hive")
    )
    monkeypatch.setenv("LOCKSTEP_HOME", str(memory))
    example: dict[str, Any] = {}
    exec(compile(sink + function, "files.md", "exec"), example)
    rows = pa.table({"id": [1, 2, 3], "fare": [1.0, 2.5, 3.0], "carrier": ["AA", "007", None], "zone": [99, 100, None]})
    areas = example["area"](rows.to_batches()[0])
    assert areas.to_pylist() == ["area=centre", "area=outskirts", "area=outskirts"]
    assert example["trips"].path == str(memory / "out/trips")
    kept = FileSink("trips", output="trips", path="out/trips", bucket=ByColumns("carrier"))
    wal = [SealedRows(rows.drop_columns("zone"), output="trips")]
    with kept.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
        live.preflight(None)
        live.publish(epoch(), live.prepare(epoch(), wal), wal)
    exec(compile(reading, "files.md", "exec"), example)
    assert example["table"].sort_by("id").equals(rows.drop_columns("zone"))


def seen(target: FilesUnderTest) -> set[int]:
    """The epochs that a reader of partitions sees, each whole, as 100 rows from 1000 times its number on."""
    ids = target.visible()["id"].to_pylist()
    epochs = {number // 1000 for number in ids}
    assert sorted(ids) == [number for one in sorted(epochs) for number in range(one * 1000, one * 1000 + 100)]
    return epochs


@pytest.mark.fault("E12")
def test_a_reader_sees_whole_epochs_at_every_step_of_publications_that_are_killed(memory: Path) -> None:
    target = FilesUnderTest(memory, "parquet", bucket=ByColumns("ok"), rows_per_file=20, success="_SUCCESS")
    publish_all(target, sealed(100, start=1000))
    killed = 0
    for number in range(2, 20):
        at, wal = epoch(number, token=10 * number), sealed(100, start=1000 * number)
        vote = prepare(target, at, wal)
        child = fork(lambda: _publish_watched(target, at, vote, wal, killed_at=4 * number))  # noqa: B023
        code = child.wait()
        assert seen(target) - {number} == set(range(1, number))
        assert publish(target, at, vote, wal) in (Publication.COMMITTED, Publication.FOUND)
        assert seen(target) == set(range(1, number + 1))
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
    assert killed > 3 and code == 0


def _publish_watched(target: FilesUnderTest, at: SinkEpoch, vote: Any, wal: list[SealedRows], killed_at: int) -> None:
    """Publish, and read before every fourth effect on the file system."""
    before, steps, one_at_a_time = seen(target), count(1), threading.Lock()

    def look(step: str) -> None:
        with one_at_a_time:
            number = next(steps)
            if number % 4 == 0:
                assert seen(target) in (before, before | {at.id}), step
            if number == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)

    effects(look)
    publish(target, at, vote, wal)


def test_rows_that_can_not_be_put_into_buckets_are_refused_by_name(memory: Path, subtests: pytest.Subtests) -> None:
    for bucket, problem in (
        (ByTime("id"), "'id' isn't a time"),
        (ByTime("none"), "no column 'none'"),
        (ByTime("at", "at=%Y"), "'at' is also the name of a folder"),
        (ByTime(folders="AT=%Y"), "'at' is also the name of a folder"),
        (ByColumns("ratio"), "'ratio' of the type double"),
        (ByColumns("at"), "'at' of the type timestamp"),
        (ByColumns("none"), "no column 'none'"),
        (ByColumns(*SCHEMA.names), "no column is left"),
        (ByFunction("nowhere.to_be:found"), "can't be imported"),
        (ByFunction("os:nothing"), "can't be imported"),
        (ByFunction("os:sep"), "no function"),
    ):
        target = FilesUnderTest(memory, "parquet", bucket=bucket)
        with subtests.test(str(bucket)), opened(target) as sink, pytest.raises(PreflightRefused, match=problem):
            sink.preflight({OUTPUT: SCHEMA})


def test_settings_that_make_no_sense_are_refused_where_they_are_written(subtests: pytest.Subtests) -> None:
    wrong: list[tuple[Callable[..., object], list[Any], dict[str, Any]]] = [
        *((ByTime, ["at", folders], {}) for folders in ("dt=2013", "dt=%Y-%S", "dt=%", "/dt=%Y", "../dt=%Y")),
        *((ByColumns, columns, {}) for columns in ([], ["a", "a"], ["_a"], ["a/b"])),
        (ByFunction, ["no function"], {}),
        *((sink_of, [], {"bucket": bucket}) for bucket in ({"by": "chance"}, "hour")),
        *((sink_of, [], {most: 0}) for most in ("max_rows_per_file", "max_bytes_per_file", "max_buckets")),
        *((sink_of, [], {"success": success}) for success in ("done", "_a/b")),
        (sink_of, [], {"success": "_a", "max_buckets": 60_001}),
    ]
    for make, arguments, settings in wrong:
        with subtests.test(f"{make.__name__} {arguments} {settings}"), pytest.raises(InvalidPipeline):
            make(*arguments, **settings)


def sink_of(**settings: Any) -> FileSink:
    return FileSink("files", output=OUTPUT, path="/nowhere", **settings)


@pytest.fixture
def assigner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Any], Any]], Buckets]]:
    """An assigner of a user's own module."""
    module = ModuleType("users_own")
    monkeypatch.setitem(sys.modules, "users_own", module)

    def of(function: Callable[[Any], Any]) -> Buckets:
        monkeypatch.setattr(module, "assign", function, raising=False)
        return ByFunction("users_own:assign")

    yield of


BAD_NAMES = [
    "",
    "/abs",
    "a//b",
    "a/",
    "..",
    "a/../b",
    ".hidden",
    "a/_x",
    "line\nend",
    "x" * 256,
    "/".join(["x" * 200] * 6),
]


def into(name: str, batch: Any) -> pa.Array:
    return pa.array([name] * batch.num_rows)


def test_rows_whose_bucket_is_no_path_below_the_target_or_not_to_be_told_are_refused_before_the_vote(
    memory: Path, assigner: Any, subtests: pytest.Subtests
) -> None:
    named: list[tuple[str, Callable[[Any], Any]]] = [("bucket", partial(into, name)) for name in BAD_NAMES]
    wavering: list[tuple[str, Callable[[Any], Any]]] = [
        (r"returned string\[1\] for 10 rows", lambda batch: pa.array(["a"])),
        (r"returned int64\[10\]", lambda batch: pa.array(range(10))),
        ("returned list", lambda batch: ["a"] * 10),
        ("no bucket for 1 rows", lambda batch: pa.array(["a"] * 9 + [None])),
        ("two buckets", lambda batch: pa.array([f"b-{id(object())}-{os.urandom(4).hex()}" for _ in range(10)])),
        ("failed with KeyError", lambda batch: batch["nothing"]),
    ]
    for problem, function in named + wavering:
        target = FilesUnderTest(memory, "parquet", bucket=assigner(function))
        with subtests.test(problem):
            with pytest.raises(SinkRejected, match=problem) as refused:
                prepare(target, epoch(), sealed(10))
            assert "nothing" not in str(refused.value), "no text of the user's error: it may quote a row"
            assert list(memory.iterdir()) == [target.path] and told(target) == []
    for value in ("", NULL):
        rows = table(3).set_column(1, "name", pa.array(["x", value, "y"]))
        with subtests.test(f"name {value}"), pytest.raises(SinkRejected, match="take for a null"):
            prepare(FilesUnderTest(memory, "parquet", bucket=ByColumns("name")), epoch(), [SealedRows(rows)])
    many = FileSink("files", output=OUTPUT, path=str(memory / "many"), bucket=ByColumns("id"), max_buckets=10)
    with many.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
        live.preflight(None)
        with pytest.raises(SinkRejected, match="more than 10 buckets"):
            live.prepare(epoch(), sealed(11))


@pytest.mark.parametrize("blocked", ["file", "symlink"])
def test_something_in_the_place_of_a_bucket_is_refused_before_the_decision_and_after_it(
    memory: Path, blocked: str
) -> None:
    target = FilesUnderTest(memory, "parquet", bucket=ByColumns("ok"))
    vote = prepare(target, epoch(), sealed(10))
    folder = target.path / "ok=true"
    if blocked == "file":
        folder.write_text("in the way")
    else:
        (memory / "elsewhere").mkdir()
        folder.symlink_to(memory / "elsewhere")
    with pytest.raises(PreflightRefused, match="ok=true"):
        prepare(target, epoch(2, token=11), sealed(10))
    with pytest.raises(PreflightRefused, match="ok=true"):
        publish(target, epoch(), vote, sealed(10))
    assert shown(target) == []
    folder.unlink()
    other = target.path / "ok=other/files-epoch=1-rows-00009.parquet"
    other.parent.mkdir()
    other.write_bytes(b"of other code")
    target.lose(str(vote.handle))
    with pytest.raises(OutcomeUnknown, match="ok=other"):
        publish(target, epoch(), vote, sealed(10))
    other.unlink()
    assert publish(target, epoch(), vote, sealed(10)) is Publication.REPAIRED
    expect_rows(target, sealed(10))
