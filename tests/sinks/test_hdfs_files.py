"""FileSink on a real HDFS: the behaviour suite; each story struck around each change; answers that are lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pyarrow as pa
import pytest

from lockstep import files
from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.epoch import Interval
from lockstep.errors import (
    LedgerConflict,
    OutcomeUnknown,
    PreflightRefused,
    Retryable,
    SinkRejected,
    SinkUnavailable,
    StoreRefused,
)
from lockstep.sinks import ByColumns, ByFunction, FileSink
from lockstep.sinks.base import Sink
from lockstep.sinks.files import _format as file_format
from lockstep.sinks.values import Publication
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._sealed_rows import OUTPUT, digest, sealed
from lockstep.testing._under_test import (
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
    sweep,
)
from stack.hdfs import HdfsServer
from tests.clean_process import CleanProcess
from tests.proxy import CuttingProxy
from tests.sampling import Sampling
from tests.sinks.hdfs_target import ON_HDFS, HdfsFilesUnderTest
from tests.sinks.in_clean_process import (
    ACTIONS,
    STORIES,
    WITHOUT_CRASHES,
    behave,
    behave_in_crashes,
    die_around_each_change,
    tell_the_guarantee,
)

ROWS = 1000


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)  # several groups a file


@pytest.fixture
def target(hdfs_uri: str, small_groups: None) -> HdfsFilesUnderTest:
    return HdfsFilesUnderTest(hdfs_uri, apart=False)


@pytest.mark.parametrize("behaviour", WITHOUT_CRASHES)
@pytest.mark.sample(3)  # of a mounted folder they are run whole
def test_file_sink_on_hdfs(clean: CleanProcess, hdfs_uri: str, behaviour: str) -> None:
    clean.call(behave, ON_HDFS, behaviour, hdfs_uri)


@pytest.mark.tier("all")
@pytest.mark.parametrize("behaviour", CRASHES, ids=lambda one: one.__name__)
@pytest.mark.sample(2)  # as above
def test_in_many_rounds_file_sink_on_hdfs_dies(
    clean: CleanProcess, hdfs_uri: str, behaviour: Behaviour, sampling: Sampling
) -> None:
    sampling.run, sampling.swept = clean.call(behave_in_crashes, ON_HDFS, behaviour.__name__, hdfs_uri, sampling.seed)


@pytest.mark.tier("all")
@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.name)
@pytest.mark.parametrize(("story", "plot"), STORIES)
@pytest.mark.sample(2)
@pytest.mark.timeout(1200)
def test_in_many_rounds_a_process_dies_around_each_change(
    clean: CleanProcess, hdfs_uri: str, story: str, plot: str, action: int, sampling: Sampling
) -> None:
    sampling.run, sampling.swept = clean.call(
        die_around_each_change, ON_HDFS, story, plot, int(action), hdfs_uri, sampling.seed
    )


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_file_sink_on_hdfs(clean: CleanProcess, hdfs_uri: str) -> None:
    clean.call(tell_the_guarantee, ON_HDFS, hdfs_uri)


@pytest.fixture
def proxy(hdfs_server: HdfsServer) -> Iterator[CuttingProxy]:
    host, port = hdfs_server.uri.removeprefix("hdfs://").split(":")
    with CuttingProxy(host, int(port)) as proxy:
        yield proxy


#: What the NameNode is asked for.
TO_PREPARE = ["mkdirs", "getListing", "getBlockLocations", "create", "fsync", "complete"]
TO_PUBLISH = [*TO_PREPARE[1:], "rename2", "delete"]
ASKED = [*((True, asked) for asked in TO_PREPARE), *((False, asked) for asked in TO_PUBLISH)]


@pytest.mark.parametrize(("preparing", "asked"), ASKED)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.sample(5)
def test_what_is_written_over_breaking_connections_is_whole_and_shown_once(
    hdfs_uri: str, small_groups: None, proxy: CuttingProxy, preparing: bool, asked: str, when: str
) -> None:
    uri = f"hdfs://127.0.0.1:{proxy.port}{HdfsAddress.of(hdfs_uri).path}"
    target, direct = HdfsFilesUnderTest(uri, apart=False), HdfsFilesUnderTest(hdfs_uri, apart=False)
    if preparing:
        proxy.cut_around(when, asked)
    for token in count(1):
        with suppress(Retryable):
            vote = prepare(target, epoch(token=token), sealed(ROWS))
            break
        assert token < 4
    if preparing:
        assert direct.bare().num_rows == 0
        sweep(direct, vote)
    else:
        proxy.cut_around(when, asked)
    publish(target, epoch(token=vote.token), vote, sealed(ROWS))
    assert proxy.cuts == 1
    expect_rows(direct, sealed(ROWS))
    assert digest(direct.bare()) == digest(direct.visible())
    expect_proof(direct, epoch(token=vote.token), sealed(ROWS))
    expect_settled(direct)


def test_buckets_are_folders_and_each_tells_that_it_is_whole_and_what_can_be_none_is_refused(hdfs_uri: str) -> None:
    uri = f"{hdfs_uri}/a b%20ä#c?d=[e]*{{f}}"
    target = HdfsFilesUnderTest(uri, apart=False, bucket=ByColumns("ok"), success="_SUCCESS-{epoch}")
    target.files.make_folder(target.root.rpartition("/")[0])
    target.files.create(target.root, b"")
    with opened(target) as sink, pytest.raises(PreflightRefused, match="not a folder"):
        sink.preflight(None)
    target.files.delete(target.root)
    target.files.make_folder(target.root)
    target.files.create(f"{target.root}/ok=true", b"")
    with pytest.raises(PreflightRefused, match="ok=true must be the folder of a bucket"):
        prepare(target, epoch(), sealed(ROWS))
    target.files.delete(f"{target.root}/ok=true")
    at = epoch(token=12)
    publish(target, at, prepare(target, at, sealed(ROWS)), sealed(ROWS))
    below = [one.path.removeprefix(f"{target.root}/") for one in target.below()]
    found = [path for path in below if not path.startswith(".lockstep/")]
    buckets = {path.rpartition("/")[0] for path in found if path.endswith(".parquet")}
    assert len(buckets) > 1 and all(bucket.startswith("ok=") for bucket in buckets)
    assert {path for path in found if "_SUCCESS" in path} == {f"{bucket}/_SUCCESS-1" for bucket in buckets}
    assert all(path.startswith(target.uri) for path in files(target.uri))
    expect_proof(target, at, sealed(ROWS))
    target.bucket = ByFunction(f"{__name__}:at_noon")
    with pytest.raises(SinkRejected, match=r"bucket 'at=12:00'.*colon"):
        prepare(target, epoch(2, token=20), sealed(ROWS))


def test_what_was_written_by_others_is_not_shown(target: HdfsFilesUnderTest) -> None:
    """Under a final name, and in the place of a pending file."""
    vote = prepare(target, epoch(), sealed(ROWS))
    [taken] = [one.name for one in target.below() if one.name.endswith("-00001.parquet")]
    target.files.create(f"{target.root}/{taken}", b"somebody else's")
    with pytest.raises(OutcomeUnknown, match=taken):
        publish(target, epoch(), vote, sealed(ROWS))
    assert files(target.uri) == []
    target.files.delete(f"{target.root}/{taken}")
    [path] = [one.path for one in target.below() if one.name.endswith("-00001.parquet")]
    data = target.files.read(path)
    target.files.delete(path)
    target.files.create(path, data[:-1] + b"x")
    assert publish(target, epoch(), vote, sealed(ROWS)) is Publication.REPAIRED
    expect_rows(target, sealed(ROWS))
    expect_settled(target)


def test_of_many_who_claim_a_folder_all_get_the_same_one(hdfs_uri: str) -> None:
    target = HdfsFilesUnderTest(hdfs_uri, apart=False)

    def claim(_: int) -> str:
        with opened(target) as sink:
            sink.preflight(None)
            return sink.target_id()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(claim, range(16)))) == 1
    expect_settled(target)


def at_noon(batch: pa.RecordBatch) -> pa.Array:
    return pa.array(["at=12:00"] * batch.num_rows)


def test_a_plan_keeps_the_cluster_that_the_configuration_named(
    hdfs_server: HdfsServer, hdfs_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink("files", output=OUTPUT, path=f"hdfs://{HdfsAddress.of(hdfs_uri).path}")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(StoreRefused, match="HADOOP_CONF_DIR"):
        sink.spec()
    monkeypatch.setenv("HADOOP_CONF_DIR", hdfs_server.environment["HADOOP_CONF_DIR"])
    frozen = sink.spec()
    monkeypatch.delenv("HADOOP_CONF_DIR")
    again = Sink.from_spec(frozen)
    assert again.arguments()["path"] == hdfs_uri
    assert again.spec() == frozen and again.writes_to() == {f"folder {hdfs_uri}"}


def test_a_cluster_in_safe_mode_is_waited_for(target: HdfsFilesUnderTest, hdfs_server: HdfsServer) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    hdfs_server.administer("-safemode", "enter")
    try:
        with opened(target) as sink, pytest.raises(SinkUnavailable, match="NameNode is in safe mode"):
            sink.publish(epoch(), vote, sealed(ROWS))
    finally:
        hdfs_server.administer("-safemode", "leave")
    publish(target, epoch(), vote, sealed(ROWS))
    expect_rows(target, sealed(ROWS))
    expect_settled(target)


def test_a_range_that_another_ledger_has_shown_is_not_shown_again(target: HdfsFilesUnderTest) -> None:
    day = Interval(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))
    first = replace(epoch(3), interval=day)
    publish(target, first, prepare(target, first, sealed(ROWS)), sealed(ROWS))
    other = replace(epoch(4), interval=day)
    vote = prepare(target, other, sealed(ROWS))
    with pytest.raises(LedgerConflict, match="shown as epoch 3"):
        publish(target, other, vote, sealed(ROWS))
    expect_rows(target, sealed(ROWS))
