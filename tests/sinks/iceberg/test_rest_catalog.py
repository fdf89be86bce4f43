"""IcebergSink by a REST catalog, with its tables on S3: SeaweedFS is both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product

import pytest

from lockstep.errors import PreflightRefused, SinkUnavailable
from lockstep.sinks.iceberg._catalogs import _ImpatientRestCatalog
from lockstep.sinks.iceberg._open_sink import OpenIcebergSink
from lockstep.sinks.values import Publication
from lockstep.testing._behaviour import BEHAVIOURS
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, opened, prepare, publish
from stack.s3 import S3Server
from tests.proxy import CuttingProxy
from tests.sampling import Sampling
from tests.sinks.iceberg.iceberg_target import RestUnderTest
from tests.sinks.iceberg.publishers import publish_at_once
from tests.sinks.open_apart import FORKING

_namespaces = count(1)
BUCKET = "lake"


@pytest.fixture(scope="module")
def table_bucket(s3_server: S3Server) -> str:
    s3_server.create_table_bucket(BUCKET)
    return BUCKET


@pytest.fixture
def target(s3_environment: S3Server, table_bucket: str) -> Iterator[RestUnderTest]:
    yield RestUnderTest(s3_environment, table_bucket, f"db{next(_namespaces)}")


def test_rest_catalog_on_s3(
    s3_environment: S3Server, table_bucket: str, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """By a catalog in PostgreSQL every behaviour is run."""
    for behaviour in sampling.sample([one for one in BEHAVIOURS if one not in FORKING], 4):
        with subtests.test(behaviour.__name__):
            behaviour(RestUnderTest(s3_environment, table_bucket, f"db{next(_namespaces)}"))


def test_an_epoch_whose_commit_has_no_answer_stands_once(target: RestUnderTest, subtests: pytest.Subtests) -> None:
    wals = [sealed(60)]
    host, _, port = target.server.iceberg.rpartition("/")[2].partition(":")
    with CuttingProxy(host, int(port)) as proxy:
        target.dsn = target.dsn.replace(f":{port}", f":{proxy.port}")
        publish(target, epoch(), prepare(target, epoch(), wals[0]), wals[0])
        for number, (lost, rows) in enumerate(product(["before", "after"], [60, 0]), 2):
            with subtests.test(f"{lost} it was read, {rows} rows"), opened(target) as sink:
                wals.append(wal := sealed(rows, start=1000 * number))
                at, cuts = epoch(number, token=10 * number, manifest=f"{number}"), proxy.cuts
                vote, output = prepare(target, at, wal), target.staged(at, wal)
                proxy.cut(**{lost: b'"assert-ref-snapshot-id"'})  # type: ignore[arg-type]
                assert sink.publish(at, vote, output) is Publication.SENT
                assert proxy.cuts == cuts + 1
                expect_rows(target, *wals)
                expect_proof(target, at, wal)


def test_two_publishers_of_every_epoch_show_it_once(target: RestUnderTest) -> None:
    answers = publish_at_once(target, 6, 2)
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
