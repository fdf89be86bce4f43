"""IcebergSink with its tables on S3, by a REST catalog (SeaweedFS is both) and by PostgreSQL; what is durable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from lockstep.errors import PreflightRefused, SinkUnavailable
from lockstep.sinks.iceberg import IcebergSink
from lockstep.sinks.iceberg._catalogs import DurableFileIO, _ImpatientRestCatalog, durable_io
from lockstep.sinks.iceberg._sink import OpenIcebergSink
from lockstep.sinks.values import Publication
from lockstep.testing._behaviour import BEHAVIOURS
from lockstep.testing._sealed_rows import OUTPUT, sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, opened, prepare, publish
from stack.s3 import S3Server
from tests.proxy import CuttingProxy
from tests.sampling import Sampling
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest, RestUnderTest
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


class OnS3(IcebergUnderTest):
    def __init__(self, dsn: str, warehouse: str, server: S3Server) -> None:
        super().__init__(dsn, Path())
        self.warehouse, self.server = warehouse, server

    def _sink(self, table: str) -> IcebergSink:
        place = {"warehouse": self.warehouse, "create": True}
        return IcebergSink("lake", output=OUTPUT, table=table, catalog="lake", **place)  # type: ignore[arg-type]

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        login = {"s3.access-key-id": self.server.access_key, "s3.secret-access-key": self.server.secret_key}
        place = {"s3.endpoint": self.server.endpoint, "s3.region": "us-east-1"}
        catalog = SqlCatalog("lake", uri=self.dsn.replace("postgresql://", "postgresql+psycopg2://"), **login, **place)
        try:
            yield catalog
        finally:
            catalog.engine.dispose()


def test_postgres_catalog_on_s3(
    s3_environment: S3Server, s3_uri: str, catalog_dsn: str, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """On local files every behaviour is run."""
    for behaviour in sampling.sample([one for one in BEHAVIOURS if one not in FORKING], 3):
        with subtests.test(behaviour.__name__):
            target = OnS3(catalog_dsn, s3_uri, s3_environment)
            target.name = f"db.{behaviour.__name__}"
            behaviour(target)


def test_whoever_makes_it_the_environment_says_where_s3_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyiceberg makes one of its own for a table that is made."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert DurableFileIO().properties["s3.endpoint"] == "http://127.0.0.1:9000"
    assert DurableFileIO({"s3.endpoint": "http://other"}).properties["s3.endpoint"] == "http://other"


def test_a_closed_file_and_every_name_on_its_way_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "db" / "table" / "metadata" / "00000.json"
    with durable_io().new_output(f"file://{path}").create() as file:
        file.write(b"{}")
        assert str(path) not in synced
    folders = [tmp_path, tmp_path / "db", tmp_path / "db" / "table"]
    assert synced == [*map(str, folders), str(path), str(path.parent)]
    assert path.read_bytes() == b"{}"


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = f"file://{tmp_path}/one"
    with durable_io().new_output(path).create() as file:
        file.write(b"1")
    with pytest.raises(FileExistsError):
        durable_io().new_output(path).create()
    with durable_io().new_output(path).create(overwrite=True) as file:
        file.write(b"2")
    assert durable_io().new_input(path).open().read() == b"2"


def test_a_table_can_not_have_another_class_loaded() -> None:
    """Who may change a table's properties would have any code run here."""
    io = durable_io({"py-io-impl": "os.system", "s3.endpoint": "http://127.0.0.1"})
    assert type(io) is DurableFileIO and "py-io-impl" not in io.properties


def test_a_file_that_is_written_anew_stays_whole_until_it_is_closed(tmp_path: Path) -> None:
    """Two publishers fold the same markers into one name; one of them is killed as it writes."""
    io, path = durable_io({}), tmp_path / "markers.json"
    for text in (b"old", b"new"):
        with io.new_output(str(path)).create(overwrite=True) as output:
            output.write(text)
    dying = io.new_output(str(path)).create(overwrite=True)
    dying.write(b"n")
    assert path.read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        io.new_output(str(path)).create()
