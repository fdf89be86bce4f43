"""What a FileSource plans and notices, wherever its files land: mounted, on a real S3 server, on a real HDFS."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.epoch import Claim, Interval, Position
from lockstep.errors import SourceChanged, SourceNotReady
from lockstep.sources import FileSource, SourceContext
from lockstep.sources.files.file_systems import file_system_of
from lockstep.sources.files.open_source import OpenFileSource
from lockstep.sources.files.paths import files_at, is_anything_at
from tests.sources.landings import TEXT, Landing, OnHdfs, OnS3

DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
SCHEMA = "id BIGINT, name STRING"


def opened(path: str, claims: Sequence[Claim] = (), **arguments: Any) -> OpenFileSource:
    """A source below `path`, of which these claims stand in the ledger."""
    known = {claim.path: claim for claim in claims}

    def found(paths: Iterable[str]) -> dict[str, Claim]:
        return {path: known[path] for path in paths if path in known}

    context = SourceContext("pipeline", "source", lambda paths: set(found(paths)), claims=found)
    return FileSource(path, schema=SCHEMA, **arguments).open(context)


def paths(position: Position) -> list[str]:
    return [file["path"] for file in position["files"]]


def by_name(position: Position) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in paths(position))


# --- which files ---


def test_a_pattern_means_the_same_everywhere(landing: Landing, subtests: pytest.Subtests) -> None:
    names = ("0", "x/1", "x/y/2", "z/3", ".h/4", "x/.h/5", "x/_6")
    landed = {name: landing.land(f"{name}.csv") for name in names}
    landing.land("x/8.csv.tmp")
    files = file_system_of(landing.path)
    for pattern, expected in [
        ("**", "0 x/1 x/y/2 z/3"),
        ("*", "0 x/1 z/3"),
        ("**/*.csv", "0 x/1 x/y/2 z/3"),
        ("*/*.csv", "x/1 z/3"),
        ("*/y/*", "x/y/2"),
        ("*/y", "x/y/2"),
        ("x", "x/1"),
        ("[xz]/[0-9].csv", "x/1 z/3"),
        ("**/y/2.csv", "x/y/2"),
        (".h*/*.csv", ".h/4"),
        ("none/**", ""),
        ("none", ""),
        ("0.csv/*", ""),
        ("0.csv", "0"),
    ]:
        with subtests.test(pattern=pattern):
            where = files.place(f"{landing.path}/{pattern}")
            assert files_at(files, where) == sorted(landed[name] for name in expected.split())


def test_a_file_is_known_by_its_name_as_it_is(landing: Landing) -> None:
    names = ["a b", "50%", "100%20", "{c}", "é", "a+b=c&d", "'quoted'", "a#b", "a?b"]
    landed = [landing.land(f"in/{name}.csv") for name in names]
    source = opened(f"{landing.path}/in")
    position = source.latest(None, None)
    assert sorted(paths(position)) == sorted(landed)
    source.check(None, position)


def test_where_an_interval_misses_its_file_somebody_without_the_source_can_look(landing: Landing) -> None:
    source = opened(f"{landing.path}/{{interval_start:%Y-%m-%d}}-*.csv")
    with pytest.raises(SourceNotReady) as caught:
        source.latest(None, DAY)
    [place] = caught.value.places
    landing.land("2013-01-03-a.csv")
    landing.land("2013-01-02-a.csv.tmp")
    assert not is_anything_at(place)
    landing.land("2013-01-02-a.csv")
    assert is_anything_at(place)
    source.latest(None, DAY)


def test_an_interval_takes_its_files_and_a_watched_folder_those_that_nobody_has(
    landing: Landing,
) -> None:
    for name in ("2013-01-02-a", "2013-01-02-b", "2013-01-03-a"):
        landing.land(f"{name}.csv")
    daily = opened(f"{landing.path}/{{interval_start:%Y-%m-%d}}-*.csv").latest(None, DAY)
    assert by_name(daily) == ["2013-01-02-a.csv", "2013-01-02-b.csv"]
    assert json.loads(json.dumps(daily)) == daily
    watched = opened(landing.path)
    first = watched.latest(None, None)
    claims = watched.claims(None, first)
    assert by_name(first) == ["2013-01-02-a.csv", "2013-01-02-b.csv", "2013-01-03-a.csv"]
    landing.land("late.csv")
    second = opened(landing.path, claims).latest(first, None)
    assert by_name(second) == ["late.csv"]
    assert opened(landing.path, claims[:2], max_files_per_epoch=1).latest(first, None)["files"] == first["files"][2:]


@pytest.mark.fault("A10")
def test_what_an_interval_lacks_is_waited_for_or_empty(landing: Landing) -> None:
    path = f"{landing.path}/{{interval_start:%Y-%m-%d}}.csv"
    with pytest.raises(SourceNotReady, match=r"2013-01-02\.csv"):
        opened(path).latest(None, DAY)
    source = opened(path, missing="empty")
    assert source.is_empty(None, source.latest(None, DAY))
    assert paths(opened(f"{landing.path}/nothing/here").latest(None, None)) == []


def test_a_folder_under_another_name_is_named_until_a_person_says_what_it_is(landing: Landing) -> None:
    landing.land("old/1.csv")
    source = opened(f"{landing.path}/old")
    first = source.latest(None, None)
    claims = source.claims(None, first)
    landing.land("new/1.csv")
    landing.land("new/2.csv", "id,name\n2,y\n3,z\n")
    landing.remove("old/1.csv")
    with pytest.raises(SourceChanged, match="formerly"):
        opened(f"{landing.path}/new", claims).latest(first, None)
    told = opened(f"{landing.path}/new", claims, formerly=f"{landing.path}/old").latest(first, None)
    assert by_name(told) == ["2.csv"]


# --- a frozen file that isn't what it was ---


CHANGES: list[tuple[Callable[[Landing], Any], str]] = [
    (lambda landing: landing.land("2013-01-02.csv", "id,name\n1,xx\n"), "size was 12, is 13"),
    (lambda landing: landing.remove("2013-01-02.csv"), "No such file"),
]


def test_a_file_that_changed_is_refused_by_name(landing: Landing, subtests: pytest.Subtests) -> None:
    for change, told in CHANGES:
        with subtests.test(told=told):
            landed = landing.land("2013-01-02.csv")
            source = opened(f"{landing.path}/{{interval_start:%Y-%m-%d}}.csv")
            position = source.latest(None, DAY)
            source.check(None, position)
            change(landing)
            with pytest.raises(SourceChanged, match=f"{landed}.*({told})"):
                source.check(None, position)


def test_an_object_is_told_from_another_by_its_etag_and_not_by_its_time(s3_uri: str) -> None:
    landing = OnS3(s3_uri)
    landed = landing.land("2013-01-02.csv")
    source = opened(f"{landing.path}/{{interval_start:%Y-%m-%d}}.csv")
    position = source.latest(None, DAY)
    frozen = position["files"][0]
    later = {**position, "files": [{**frozen, "mtime_ns": frozen["mtime_ns"] - 10**12}]}
    landing.land("2013-01-02.csv")
    source.check(None, later)  # the same bytes again, at another time
    assert source.changed_files(None, later) == []
    landing.land("2013-01-02.csv", TEXT.upper())
    with pytest.raises(SourceChanged, match=f"{landed} changed .*: ETag was .*, is "):
        source.check(None, position)
    [changed] = opened(source._source.path).changed_files(None, position)
    assert changed.path == landed and "ETag" in changed.difference


# --- the store ---


def test_a_store_that_refuses_to_list_is_not_an_empty_folder(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    OnS3(s3_uri).land("2013-01-02.csv")
    source = opened(f"{s3_uri}/{{interval_start:%Y-%m-%d}}.csv", missing="empty")
    position = source.latest(None, DAY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    for path in (f"{s3_uri}/{{interval_start:%Y-%m-%d}}.csv", f"{s3_uri}/{{interval_start:%Y}}-*.csv"):
        with pytest.raises(SourceNotReady, match="refuses the login"):
            opened(path, missing="empty").latest(None, DAY)
    with pytest.raises(SourceNotReady, match="refuses the login"):  # which is tried again
        opened(f"{s3_uri}/{{interval_start:%Y-%m-%d}}.csv").check(None, position)
    assert "can't be listed" in opened(source._source.path).late_files(None, position)[0]


# --- HDFS ---


@pytest.mark.tier("all")
def test_a_file_of_hdfs_is_told_from_another_by_its_time(hdfs_uri: str) -> None:
    landing = OnHdfs(hdfs_uri)
    landed = landing.land("2013-01-02.csv")
    source = opened(f"{landing.path}/{{interval_start:%Y-%m-%d}}.csv", hash=True)
    position = source.latest(None, DAY)
    assert position["files"][0]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    source.check(None, position)
    landing.land("2013-01-02.csv", TEXT.upper())
    with pytest.raises(SourceChanged, match=f"{landed} changed .*: time of change was .*sha256 was"):
        source.check(None, position)


@pytest.mark.tier("all")
def test_a_folder_of_hdfs_that_may_not_be_listed_is_not_empty(hdfs_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    landing = OnHdfs(hdfs_uri)
    landing.land("in/a.csv")
    landing.close("in")
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    for path in (f"{landing.path}/in", f"{landing.path}/*/*.csv"):
        with pytest.raises(SourceNotReady, match="Permission denied"):
            opened(path).latest(None, None)
