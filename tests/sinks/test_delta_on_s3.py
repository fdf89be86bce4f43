"""DeltaSink on a real S3 server, beside others, and with requests that a proxy disturbs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

import pytest

from lockstep.sinks.delta import DeltaSink
from lockstep.sinks.values import Publication
from lockstep.testing._behaviour import behaviours
from lockstep.testing._sealed_rows import OUTPUT, sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, prepare, publish
from stack.s3 import S3Server
from tests.apart import apart
from tests.clean_process import CleanProcess
from tests.s3_proxy import Fault, S3Proxy
from tests.sampling import Sampling
from tests.sinks.delta_on_s3 import DeltaOnS3UnderTest, behave, looked_at, preflight, published
from tests.sinks.iceberg.publishers import publish_at_once


@pytest.fixture
def proxy(s3_environment: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_environment.endpoint) as proxy:
        yield proxy


@pytest.fixture
def by_proxy(s3_uri: str, proxy: S3Proxy) -> str:
    """A table's URI that leads to it through the proxy."""
    return f"{s3_uri}/table?endpoint_override={proxy.endpoint.removeprefix('http://')}&scheme=http"


def test_delta_on_s3(clean: CleanProcess, s3_uri: str, subtests: pytest.Subtests, sampling: Sampling) -> None:
    """Of a local table every behaviour is run."""
    for name in sampling.sample([one.__name__ for one in behaviours(DeltaOnS3UnderTest)], 4):
        with subtests.test(name):
            clean.call(behave, name, f"{s3_uri}/{name}")


ENTRY = "_delta_log/00000000000000000001.json"  #: of the first epoch, behind the one that makes the table


FAULTS = [Fault.LOST_ANSWER, Fault.ERROR, Fault.CUT_UPLOAD, Fault.SLOW_DOWN, Fault.ERROR_AFTER]


def test_an_epoch_whose_commit_has_no_answer_stands_once(
    clean: CleanProcess, by_proxy: str, proxy: S3Proxy, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    for times, rows, fault in sampling.sample(list(product([1, 3], [60, 0], FAULTS)), 3):
        table = f"{fault.name}-{rows}-{times}"
        with subtests.test(table):
            proxy.plan(fault, "PUT", f"{table}/{ENTRY}", times)
            clean.call(_expect_both_once, by_proxy.replace("/table", f"/{table}"), rows)
            assert proxy.hits.pop(fault) >= 1


def _expect_both_once(uri: str, rows: int) -> None:
    apart(lambda: _expect_both_once_here(uri, rows))


def _expect_both_once_here(uri: str, rows: int) -> None:
    target, first, second = DeltaOnS3UnderTest(uri), sealed(rows), sealed(40, start=1000)
    published(target, 1, first)
    published(target, 2, second)
    expect_rows(target, first, second)
    at = epoch(1, token=10, manifest="1")
    expect_proof(target, at, first)
    assert publish(target, at, prepare(target, at, first), first) is Publication.FOUND
    added = looked_at(uri, lambda log: log.added())
    assert len(added) == len(set(added))


def test_a_commit_that_arrives_after_it_was_given_up_changes_nothing(
    clean: CleanProcess, by_proxy: str, proxy: S3Proxy
) -> None:
    proxy.plan(Fault.LATE, "PUT", ENTRY)
    clean.call(_expect_both_once, by_proxy, 60)
    before = clean.call(_actions, by_proxy)
    proxy.release()
    assert proxy.late.get(timeout=60) in (409, 412)
    assert clean.call(_actions, by_proxy) == before


def _actions(uri: str) -> str:
    return json.dumps(looked_at(uri, lambda log: log.actions()))


def test_two_publishers_of_every_epoch_show_it_once(clean: CleanProcess, s3_uri: str) -> None:
    clean.call(_publish_at_once, f"{s3_uri}/table", 4)


def _publish_at_once(uri: str, rounds: int) -> None:
    answers = publish_at_once(DeltaOnS3UnderTest(uri), rounds, 2)
    assert all(told.count(Publication.SENT) <= 1 for told in answers), answers


OTHER_WAYS = {
    "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    "AWS_S3_LOCKING_PROVIDER": "dynamodb",
    "AWS_COPY_IF_NOT_EXISTS": "header: cf-copy-destination-if-none-match: *",
}


def test_an_environment_that_asks_for_another_way_to_commit_is_passed_over(
    clean: CleanProcess, by_proxy: str, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for name, value in OTHER_WAYS.items():
        with subtests.test(name), monkeypatch.context() as patch:
            patch.setenv(name, value)
            proxy.requests.clear()
            clean.call(_publish_at_once, by_proxy.replace("/table", f"/{name}"), 1)
            entries = [path for method, path in proxy.requests if method == "PUT" and "_delta_log/" in path]
            assert entries and all(path.endswith(".json") and "tmp" not in path for path in entries)


def test_a_store_that_knows_no_conditions_is_refused_before_a_table_is_made(
    clean: CleanProcess, by_proxy: str, proxy: S3Proxy
) -> None:
    proxy.plan(Fault.UNCONDITIONAL, "PUT", times=1000)
    with pytest.raises(AssertionError, match=r"PreflightRefused: sink delta: s3://\S+ doesn't keep to If-None-Match"):
        clean.call(preflight, by_proxy)
    assert not [path for method, path in proxy.requests if method == "PUT" and "_delta_log" in path]


def test_no_secret_stands_in_the_plan_or_in_a_message(
    clean: CleanProcess, s3_uri: str, s3_environment: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = json.dumps(DeltaSink("delta", output=OUTPUT, path=f"{s3_uri}/table").spec())
    assert s3_environment.secret_key not in told and s3_environment.access_key not in told
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(AssertionError, match="SignatureDoesNotMatch") as refused:
        clean.call(preflight, f"{s3_uri}/table")
    assert "guessed" not in str(refused.value)
