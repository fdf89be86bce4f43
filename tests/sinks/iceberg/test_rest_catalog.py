"""IcebergSink by a REST catalog, with its tables on S3: SeaweedFS is both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from lockstep.errors import PreflightRefused, SinkUnavailable
from lockstep.sinks.iceberg._catalogs import _ImpatientRestCatalog
from lockstep.sinks.iceberg._open_sink import OpenIcebergSink
from lockstep.sinks.values import Publication
from lockstep.testing._behaviour import (
    BEHAVIOURS,
    CRASHES,
    Behaviour,
    processes_that_publish_at_once_show_the_rows_once,
)
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, opened, prepare
from stack.s3 import S3Server
from tests.proxy import CuttingProxy
from tests.sinks.iceberg.iceberg_target import RestUnderTest
from tests.sinks.iceberg.publishers import publish_at_once

_namespaces = count(1)
BUCKET = "lake"
#: whose children are forked, where clients of S3 have threads that don't live on
FORKS = (*CRASHES, processes_that_publish_at_once_show_the_rows_once)


@pytest.fixture(scope="module")
def table_bucket(s3_server: S3Server) -> str:
    s3_server.create_table_bucket(BUCKET)
    return BUCKET


@pytest.fixture
def target(s3_environment: S3Server, table_bucket: str) -> Iterator[RestUnderTest]:
    yield RestUnderTest(s3_environment, table_bucket, f"db{next(_namespaces)}")


@pytest.mark.parametrize("behaviour", [one for one in BEHAVIOURS if one not in FORKS], ids=lambda one: one.__name__)
def test_rest_catalog_on_s3(target: RestUnderTest, behaviour: Behaviour) -> None:
    behaviour(target)


@pytest.mark.parametrize("lost", ["before", "after"])
@pytest.mark.parametrize("rows", [60, 0])
def test_an_epoch_whose_commit_has_no_answer_stands_once(target: RestUnderTest, lost: str, rows: int) -> None:
    first, second = sealed(60), sealed(rows, start=1000)
    host, _, port = target.server.iceberg.rpartition("/")[2].partition(":")
    with CuttingProxy(host, int(port)) as proxy:
        target.dsn = target.dsn.replace(f":{port}", f":{proxy.port}")
        at = epoch(2, token=20, manifest="b")
        with opened(target) as sink:
            vote = prepare(target, epoch(), first)
            sink.publish(epoch(), vote, target.staged(epoch(), first))
            vote, output = prepare(target, at, second), target.staged(at, second)
            proxy.cut(**{lost: b'"assert-ref-snapshot-id"'})  # type: ignore[arg-type]
            assert sink.publish(at, vote, output) is Publication.SENT
        assert proxy.cuts == 1
        expect_rows(target, first, second)
        expect_proof(target, at, second)


def test_two_publishers_of_every_epoch_show_it_once(target: RestUnderTest) -> None:
    answers = publish_at_once(target, 20, 2)
    assert all(told.count(Publication.SENT) == 1 for told in answers)


def test_a_login_stands_in_no_url_and_no_message(target: RestUnderTest) -> None:
    with opened(target) as sink:
        assert isinstance(sink, OpenIcebergSink)
        catalog = sink._link.catalog
        assert isinstance(catalog, _ImpatientRestCatalog)
        assert target.server.secret_key not in catalog.uri and "@" not in catalog.uri
    target.dsn = target.dsn.replace(target.server.secret_key, "guessed")
    with pytest.raises((PreflightRefused, SinkUnavailable)) as refused, opened(target):
        pass
    assert "guessed" not in str(refused.value)
