"""FileSink on a prefix of a real S3 server. Each call is made in a process apart: the client doesn't survive a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset as ds

from lockstep.connections.object_store.store import ObjectStore
from lockstep.sinks.base import Sink
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files.buckets import Buckets
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA
from lockstep.testing._under_test import SinkUnderTest
from tests.apart import apart
from tests.sinks.in_clean_process import RemoteFiles
from tests.sinks.open_apart import OpenApart

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class FileSinkApart(FileSink):
    """A FileSink each of whose calls is made in a process of its own."""

    def open(self, context: SinkContext) -> OpenSink:  # type: ignore[override] # a wrapper
        return OpenApart(self, lambda: FileSink.open(self, context))


class FilesApartUnderTest(SinkUnderTest):
    """`uri`: where nothing is yet, with how the store is reached. Small files, so that an epoch has several."""

    replaceable = True

    def __init__(
        self, uri: str, *, apart: bool = True, bucket: Buckets | None = None, success: str | None = None
    ) -> None:
        self.place, _, self.options = uri.partition("?")
        self.bucket, self.success = bucket, success
        self.kind = FileSinkApart if apart else FileSink

    @property
    def uri(self) -> str:
        return self._uri("out")

    def _uri(self, folder: str) -> str:
        return f"{self.place}/{folder}{f'?{self.options}' if self.options else ''}"

    def sink(self, *, shared: bool = False) -> FileSink:
        return self._sink("out", shared)

    def _sink(self, folder: str, shared: bool = False) -> FileSink:
        return self.kind(
            "files",
            output=OUTPUT,
            path=self._uri(folder),
            bucket=self.bucket,
            max_rows_per_file=300,
            success=self.success,
            shared=shared,
        )

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = self._sink("elsewhere")
        with sink.opened(self.context()) as live:
            live.preflight(None)
        return sink, self.context()

    def _look(self, call: Callable[[], T]) -> T:
        return call() if self.kind is FileSink else apart(call)

    def visible(self) -> pa.Table:
        """As docs/sinks/files.md has it: who finds a file gone that was listed asks again."""

        def look() -> pa.Table:
            for _ in range(100):
                with suppress(OSError):  # pyarrow has no word of its own for an object that goes while it is read
                    return self._rows(files(self.uri))
            return self._rows(files(self.uri))

        return self._look(look)

    def _rows(self, paths: list[str]) -> pa.Table:
        """By a reader that knows nothing of Lockstep."""
        raise NotImplementedError


class S3FilesUnderTest(FilesApartUnderTest):
    @property
    def store(self) -> ObjectStore:
        return ObjectStore.at(self.uri)

    def published(self) -> list[str]:
        return files(self.uri)

    def bare(self) -> pa.Table:
        """What a reader sees who lists the prefix and knows nothing of markers."""

        def look() -> pa.Table:
            paths = [found.path for found in self.store.find_below("")]
            shown = [path for path in paths if path.endswith(".parquet") and not path.startswith(".lockstep/")]
            return self._rows([f"s3://{self.store.key_of(path)}" for path in sorted(shown)])

        return self._look(look)

    def unsettled(self) -> list[str]:
        def look() -> list[str]:
            store, published = self.store, set(files(self.uri))
            state = ("target.json", "epoch=", "span=", "files/", "replaced/")
            kept = tuple(f".lockstep/{name}" for name in state)
            left = [found.path for found in store.find_below("") if not found.path.startswith(kept)]
            left = [path for path in left if not path.rpartition("/")[2].startswith("_SUCCESS")]
            return [path for path in left if f"s3://{store.key_of(path)}" not in published]

        return self._look(look)

    def lose(self, handle: str) -> None:
        def take_away() -> None:
            self.store.delete([found.path for found in self.store.find_below(f".lockstep/pending/{handle}")])

        self._look(take_away)

    def _rows(self, paths: list[str]) -> pa.Table:
        from pyarrow.fs import S3FileSystem

        if not paths:
            return SCHEMA.empty_table()
        host = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
        store = S3FileSystem(endpoint_override=host, scheme="http", region=os.environ["AWS_REGION"])
        keys = [path.removeprefix("s3://") for path in paths]
        return ds.dataset(keys, SCHEMA, "parquet", filesystem=store).to_table(use_threads=False)


ON_S3 = RemoteFiles(
    "S3",
    S3FilesUnderTest,
    ObjectStore,
    ("create", "replace", "put_file", "copy", "delete"),
    written="before put_file",
    shown="after copy",
)
