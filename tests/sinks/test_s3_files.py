"""FileSink on a prefix of a real S3 server: what its objects are called, who owns them, and requests that go wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.connections.object_store.store import ObjectStore
from lockstep.epoch import Interval, Vote
from lockstep.errors import (
    LedgerConflict,
    OutcomeUnknown,
    SinkRejected,
    StoreRefused,
    TargetChanged,
    TargetOwned,
)
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files._prefix import PrefixTarget
from lockstep.sinks.files.buckets import ByColumns
from lockstep.sinks.values import EpochCut, Publication, SinkContext, SinkEpoch
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, digest, sealed
from lockstep.testing._under_test import (
    DEPLOYMENT,
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
    sweep,
)
from stack.s3 import S3Server
from tests.clean_process import CleanProcess
from tests.s3_proxy import Fault, S3Proxy
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
from tests.sinks.s3_target import ON_S3, S3FilesUnderTest

ROWS = 1000


@pytest.fixture
def proxy(s3_environment: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_environment.endpoint) as proxy:
        yield proxy


@pytest.fixture
def target(s3_uri: str, proxy: S3Proxy) -> S3FilesUnderTest:
    host = proxy.endpoint.removeprefix("http://")
    return S3FilesUnderTest(f"{s3_uri}?endpoint_override={host}&scheme=http", apart=False)


@pytest.fixture
def store(target: S3FilesUnderTest) -> ObjectStore:
    return ObjectStore.at(target.uri)


def keys(store: ObjectStore, folder: str = "") -> list[str]:
    return sorted(found.path for found in store.find_below(folder))


def pending_files(store: ObjectStore) -> list[str]:
    return [path for path in keys(store, ".lockstep/pending") if path.endswith(".parquet")]


def test_what_is_pending_lies_in_the_state_and_final_names_carry_epoch_number_and_content_but_no_attempt(
    target: S3FilesUnderTest, store: ObjectStore
) -> None:
    vote = prepare(target, epoch(3, token=77), sealed(ROWS))
    assert {path.partition("/")[0] for path in keys(store)} == {".lockstep"}
    assert {path.split("/")[2] for path in pending_files(store)} == {vote.handle}
    assert target.bare().num_rows == 0
    publish(target, epoch(3, token=77), vote, sealed(ROWS))
    marker = json.loads(store.read(".lockstep/epoch=3.json"))
    assert [fact["name"] for fact in marker["files"]] == [
        f"files-epoch=3-rows-{number:05d}-{fact['sha256'][:16]}.parquet" for number, fact in enumerate(marker["files"])
    ]
    assert target.published() == [f"s3://{store.key_of(fact['name'])}" for fact in marker["files"]]
    assert digest(target.bare()) == digest(target.visible())


def test_an_epoch_of_one_file_takes_few_requests_and_none_for_its_rows(
    target: S3FilesUnderTest, proxy: S3Proxy
) -> None:
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
        counts = [len(proxy.requests)]
        vote = sink.prepare(epoch(), sealed(10))
        counts.append(len(proxy.requests))
        sink.publish(epoch(), vote, sealed(10))
        counts.append(len(proxy.requests))
    made = proxy.requests[counts[0] :]
    assert (counts[1] - counts[0], counts[2] - counts[1]) == (6, 13), made
    assert not [path for method, path in made if method == "GET" and path.endswith(".parquet")]
    with opened(target) as sink:
        sink.preflight(None)
    trials = {path.rpartition("/")[2] for method, path in proxy.requests if ".trial-" in path and method == "PUT"}
    assert len(trials) == 1, "a store is tried out once and not at each epoch"


def test_buckets_are_folders_and_success_is_told_in_each_and_a_key_that_is_too_long_is_refused(s3_uri: str) -> None:
    target = S3FilesUnderTest(s3_uri, apart=False, bucket=ByColumns("ok"), success="_SUCCESS-{epoch}")
    publish(target, epoch(), prepare(target, epoch(), sealed(ROWS)), sealed(ROWS))
    found = keys(ObjectStore.at(target.uri))
    buckets = {path.rpartition("/")[0] for path in found if path.endswith(".parquet")}
    assert len(buckets) > 1 and all(bucket.startswith("ok=") for bucket in buckets)
    assert {path for path in found if "_SUCCESS" in path} == {f"{bucket}/_SUCCESS-1" for bucket in buckets}
    expect_proof(target, epoch(), sealed(ROWS))
    expect_settled(target)
    target = S3FilesUnderTest(f"{s3_uri}/{'x' * 900}", apart=False)
    with pytest.raises(SinkRejected, match="1024"):
        prepare(target, epoch(), sealed(ROWS))


def test_a_prefix_belongs_to_one_sink_until_it_leaves_it(target: S3FilesUnderTest) -> None:
    prepare(target, epoch(), sealed(ROWS))
    with opened(target, target.context(pipeline="pipe2")) as sink, pytest.raises(TargetOwned, match="shared=True"):
        sink.preflight(None)
    with opened(target) as sink:
        sink.disclaim()
    with opened(target, target.context(pipeline="pipe2")) as sink:
        sink.preflight(None)


def test_a_login_of_a_connection_is_used_and_stands_in_no_plan(
    s3_environment: S3Server, s3_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = f"aws://{s3_environment.access_key}:{s3_environment.secret_key}@/?region_name=us-east-1"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    sink = FileSink("files", output=OUTPUT, path=f"{s3_uri}/out", connection="lake")
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {"lake": login})) as live:
        live.preflight({OUTPUT: SCHEMA})
        live.publish(epoch(), live.prepare(epoch(), sealed(ROWS)), sealed(ROWS))
    assert len(files(f"{s3_uri}/out", login)) == 1
    assert s3_environment.secret_key not in json.dumps(sink.spec())


DISTURBED = [
    (fault, method, part)
    for fault in Fault
    if fault not in (Fault.SLOW, Fault.LATE, Fault.UNCONDITIONAL)
    for method, part in [
        ("PUT", "target.json"),
        ("PUT", ".lockstep/pending/"),
        ("PUT", "_vote.json"),
        ("PUT", "span="),
        ("PUT", "files/epoch=1.json"),
        ("PUT", "/out/files-epoch=1"),
        ("PUT", ".lockstep/epoch=1.json"),
        ("GET", "_vote.json"),
        ("GET", "list-type=2"),
        ("HEAD", "target.json"),
        ("POST", "?delete"),
    ]
    if fault is not Fault.CUT_UPLOAD or (method == "PUT" and "/out/files" not in part)
]


@pytest.mark.fault("E27")
@pytest.mark.parametrize(("fault", "method", "part"), DISTURBED)
@pytest.mark.sample(4)
def test_a_disturbed_request_neither_loses_nor_doubles_a_row(
    fault: Fault, method: str, part: str, target: S3FilesUnderTest, proxy: S3Proxy
) -> None:
    wal, at = sealed(ROWS), replace(epoch(), interval=DAY)
    proxy.plan(fault, method, part)
    vote = prepare(target, at, wal)
    assert publish(target, at, vote, wal) is Publication.COMMITTED
    assert proxy.hits[fault] == 1, "it wasn't disturbed"
    assert publish(target, at, vote, wal) is Publication.FOUND
    expect_rows(target, wal)
    assert digest(target.bare()) == digest(target.visible())
    assert [path for path in target.unsettled() if "span=" not in path] == []


@pytest.mark.fault("E27")
@pytest.mark.parametrize("part", [".lockstep/epoch=1.json", "files/epoch=1.json", "/out/files-epoch=1", ".parquet"])
@pytest.mark.sample(2)
def test_a_put_that_arrives_after_it_was_given_up_changes_no_row(
    target: S3FilesUnderTest, proxy: S3Proxy, part: str
) -> None:
    wal = sealed(ROWS)
    proxy.plan(Fault.LATE, "PUT", part)
    vote = prepare(target, epoch(), wal)
    assert publish(target, epoch(), vote, wal) is Publication.COMMITTED
    proxy.release()
    assert proxy.late.get(timeout=60)
    sweep(target, vote)
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    expect_proof(target, epoch(), wal)
    assert digest(target.bare()) == digest(target.visible())
    expect_settled(target)


def test_a_store_that_knows_no_conditions_is_refused_before_anything_is_claimed(
    target: S3FilesUnderTest, proxy: S3Proxy
) -> None:
    proxy.plan(Fault.UNCONDITIONAL, "PUT", times=1000)
    with pytest.raises(StoreRefused, match="doesn't keep to If-None-Match"), opened(target) as sink:
        sink.preflight(None)
    assert not [path for method, path in proxy.requests if method == "PUT" and "target.json" in path]


def test_objects_of_a_replaced_epoch_go_and_its_markers_stay(target: S3FilesUnderTest, store: ObjectStore) -> None:
    first = epoch(1)
    for at, rows in ((first, ROWS), (epoch(2, token=20, manifest="b", replaced=[first]), 10)):
        publish(target, at, prepare(target, at, sealed(rows)), sealed(rows))
    assert target.bare().num_rows == 10
    assert set(keys(store, ".lockstep")) >= {
        f".lockstep/{folder}epoch=1.json" for folder in ("", "files/", "replaced/")
    }
    with opened(target) as sink:
        assert len(sink.cut(EpochCut(2))[0].files or ()) == 1
        assert [marker.replaced for marker in sink.markers()] == [(), (1,)]


@pytest.mark.fault("N2")
def test_what_a_zombie_of_a_replaced_epoch_copies_is_taken_away_by_a_sweep(
    target: S3FilesUnderTest, store: ObjectStore
) -> None:
    first = epoch(1)
    vote = prepare(target, first, sealed(ROWS))
    late = {path: store.read(path) for path in keys(store, f".lockstep/pending/{vote.handle}")}
    publish(target, first, vote, sealed(ROWS))
    shown = [path for path in keys(store) if not path.startswith(".lockstep/")]
    content = {path: store.read(path) for path in shown}
    second = epoch(2, token=20, manifest="b", replaced=[first])
    publish(target, second, prepare(target, second, sealed(10)), sealed(10))
    for path, data in (late | content).items():
        store.replace(path, data)  # a process that was stopped before it put them goes on, and dies
    assert target.bare().num_rows == ROWS + 10 and target.visible().num_rows == 10
    assert [txn.epoch for txn in sweep(target)] == [1]
    assert target.bare().num_rows == 10
    expect_settled(target)


def test_pending_objects_that_were_damaged_are_written_again(target: S3FilesUnderTest, store: ObjectStore) -> None:
    wals = []
    for number, damage in enumerate(("changed", "gone", "no vote"), 1):
        wals.append(wal := sealed(400, start=1000 * number))
        vote = prepare(target, epoch(number, token=10 * number), wal)
        struck = pending_files(store)[1]
        if damage == "changed":
            store.replace(struck, store.read(struck)[::-1])
        else:
            store.delete([struck if damage == "gone" else f".lockstep/pending/{vote.handle}/_vote.json"])
        at = epoch(number, token=10 * number + 2)
        assert publish(target, at, vote, wal) is Publication.REPAIRED, damage
        expect_rows(target, *wals)
        assert digest(target.bare()) == digest(target.visible())
        sweep(target)


def write_other_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another pyarrow might."""
    monkeypatch.setattr("lockstep.sinks.files._format.ROWS_PER_GROUP", 50)


class Died(Exception):
    """Nothing that is tried again, as what a store refuses would be, for a minute."""


def die_at_copy(nth: int, patch: pytest.MonkeyPatch) -> None:
    """One at a time, so that exactly `nth` - 1 are made."""
    copies, copy = iter(range(1, nth)), ObjectStore.copy

    def copy_or_die(store: ObjectStore, source: str, target: str) -> None:
        if next(copies, None) is None:
            raise Died
        copy(store, source, target)

    patch.setattr(ObjectStore, "copy", copy_or_die)
    patch.setattr("lockstep.sinks.files._prefix.PARALLEL", 1)


def cut_off(target: S3FilesUnderTest, at: SinkEpoch, vote: Vote, wal: list[SealedRows]) -> None:
    """Publish, and die when two files are shown."""
    with pytest.MonkeyPatch.context() as patch:
        die_at_copy(3, patch)
        with pytest.raises(Died):
            publish(target, at, vote, wal)


@pytest.mark.parametrize("other_is", ["whole", "cut off", "given up by hand"])
def test_of_two_who_write_again_other_bytes_one_copies_nothing(
    target: S3FilesUnderTest, store: ObjectStore, monkeypatch: pytest.MonkeyPatch, other_is: str
) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    target.lose(str(vote.handle))
    show = PrefixTarget.publish

    def show_after_another(one: PrefixTarget, *arguments: Any) -> bool:
        monkeypatch.setattr(PrefixTarget, "publish", show)
        with pytest.MonkeyPatch.context() as patch:
            write_other_bytes(patch)
            if other_is == "whole":
                publish(target, epoch(token=12), vote, sealed(ROWS))
            else:
                cut_off(target, epoch(token=12), vote, sealed(ROWS))
        return one.publish(*arguments)

    monkeypatch.setattr(PrefixTarget, "publish", show_after_another)
    if other_is == "whole":
        assert publish(target, epoch(token=13), vote, sealed(ROWS)) is Publication.FOUND
    else:
        with pytest.raises(OutcomeUnknown, match=r"lists other files.*delete the files that it lists, then it"):
            publish(target, epoch(token=13), vote, sealed(ROWS))
        assert target.bare().num_rows == 600
        if other_is == "cut off":
            write_other_bytes(monkeypatch)
        else:
            listed = json.loads(store.read(".lockstep/files/epoch=1.json"))["files"]
            store.delete([fact["name"] for fact in listed])
            store.delete([".lockstep/files/epoch=1.json"])
        assert publish(target, epoch(token=14), vote, sealed(ROWS)) is Publication.REPAIRED
    assert digest(target.bare()) == digest(target.visible())
    expect_rows(target, sealed(ROWS))


def test_a_ledger_that_was_restored_shows_nothing_beside_files_of_its_cut_off_life(
    target: S3FilesUnderTest, store: ObjectStore
) -> None:
    for number, span in enumerate((DAY, None), 1):
        first, second = (replace(epoch(number, token=token, manifest=f"{token}"), interval=span) for token in (10, 11))
        cut_off(target, first, prepare(target, first, sealed(ROWS)), sealed(ROWS))
        shown = target.bare()
        wal = sealed(ROWS, start=5000)
        with pytest.raises(LedgerConflict, match="no record"):
            publish(target, second, prepare(target, second, wal), wal)
        assert digest(target.bare()) == digest(shown)
        assert target.published() == []


def test_an_epoch_that_was_published_before_its_files_were_told_first_stays_published(
    target: S3FilesUnderTest, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    publish(target, epoch(), vote, sealed(ROWS))
    store.delete([".lockstep/files/epoch=1.json"])
    write_other_bytes(monkeypatch)
    assert publish(target, epoch(token=12), vote, sealed(ROWS)) is Publication.FOUND
    expect_proof(target, epoch(), sealed(ROWS))
    assert digest(target.bare()) == digest(target.visible())


def test_a_damaged_marker_is_never_believed_and_a_lost_file_is_missed(
    target: S3FilesUnderTest, store: ObjectStore
) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    publish(target, epoch(), vote, sealed(ROWS))
    path = ".lockstep/epoch=1.json"
    store.delete([path for path in keys(store) if path.startswith("files-epoch=1-")][:1])
    with opened(target) as sink, pytest.raises(TargetChanged, match="missing or damaged"):
        list(sink.read(1, OUTPUT, SCHEMA))
    store.replace(path, store.read(path).replace(b'"rows": ', b'"rows": 7'))
    for ask in (lambda: publish(target, epoch(), vote, sealed(ROWS)), lambda: files(target.uri)):
        with pytest.raises(OutcomeUnknown, match="damaged"):
            ask()


DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))


def test_a_range_is_shown_under_one_number_only(target: S3FilesUnderTest) -> None:
    first, second = (replace(epoch(number, token=10 * number), interval=DAY) for number in (1, 2))
    votes = prepare(target, first, sealed(ROWS)), prepare(target, second, sealed(ROWS))
    publish(target, first, votes[0], sealed(ROWS))
    with pytest.raises(LedgerConflict):
        publish(target, second, votes[1], sealed(ROWS))
    expect_rows(target, sealed(ROWS))
    assert digest(target.bare()) == digest(target.visible())


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
    sampling.run, sampling.swept = clean.call(behave_in_crashes, ON_S3, behaviour.__name__, s3_uri, sampling.seed)


@pytest.mark.fault("E28")
@pytest.mark.tier("all")
@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.name)
@pytest.mark.parametrize(("story", "plot"), STORIES)
@pytest.mark.sample(3)
def test_in_many_rounds_a_process_dies_around_each_request(
    clean: CleanProcess, s3_uri: str, story: str, plot: str, action: int, sampling: Sampling
) -> None:
    sampling.run, sampling.swept = clean.call(
        die_around_each_change, ON_S3, story, plot, int(action), s3_uri, sampling.seed
    )


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_file_sink_on_s3(clean: CleanProcess, s3_uri: str) -> None:
    clean.call(tell_the_guarantee, ON_S3, s3_uri)
