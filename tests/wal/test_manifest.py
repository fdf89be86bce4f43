"""The manifest round-trips, is canonical, and refuses whatever it isn't."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from lockstep.errors import FormatUnknown, WalCorrupt
from lockstep.wal.manifest import MANIFEST_FORMAT, Manifest, OutputManifest, SourceCount, WalFile, canonical
from tests.cases import cases

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("tags", pa.list_(pa.struct([("ß", pa.string())]))),
    ]
)
FILES = (WalFile("part-00000-x.parquet", 1000, 3, "a" * 64), WalFile("part-00001-x.parquet", 500, 2, "b" * 64))
MANIFEST = Manifest(
    deployment="0b2f9c1e-1111-4222-8333-444455556666",
    pipeline="flights",
    epoch=3,
    token=17,
    outputs={"flights": OutputManifest("flights", SCHEMA, 5, "c" * 32, FILES)},
    sources={"landing": SourceCount(6, 1)},
    digest_version=1,
)


def test_a_manifest_survives_its_bytes() -> None:
    read = Manifest.from_bytes(MANIFEST.to_bytes())
    assert read == MANIFEST
    assert read.outputs["flights"].schema.equals(SCHEMA, check_metadata=True)
    assert read.hash == MANIFEST.hash == hashlib.sha256(MANIFEST.to_bytes()).hexdigest()
    data = MANIFEST.to_bytes()
    assert data == canonical(json.loads(data))
    assert b" " not in data and data.isascii()
    assert data == replace(MANIFEST, sources=dict(MANIFEST.sources)).to_bytes()
    data = MANIFEST.to_bytes() + b"\n"
    assert Manifest.from_bytes(data).to_bytes() == data
    assert Manifest.from_bytes(data).hash != MANIFEST.hash
    changed = replace(Manifest.from_bytes(MANIFEST.to_bytes()), epoch=4)
    assert json.loads(changed.to_bytes())["epoch"] == 4


def test_the_summary_keeps_counts_and_digests_and_tells_other_columns_apart() -> None:
    flights = MANIFEST.outputs["flights"]
    assert MANIFEST.summary() == {
        "digest_version": 1,
        "outputs": {"flights": {"rows": 5, "digest": "c" * 32, "bytes": 1500, "files": 2, "columns": flights.columns}},
        "sources": {"landing": {"rows": 6, "quarantined": 1}},
    }
    others = [pa.schema(list(reversed(SCHEMA))), SCHEMA.set(0, SCHEMA.field(0).with_name("other"))]
    found = {replace(flights, schema=schema).columns for schema in (SCHEMA, *others)}
    assert len(found) == 3 and all(len(columns) == 16 for columns in found)


@pytest.mark.fault("G5")
def test_a_newer_format_is_refused_by_name_and_is_not_called_corrupt() -> None:
    value = json.loads(MANIFEST.to_bytes()) | {
        "format": MANIFEST_FORMAT + 1,
        "outputs": "whatever a later version says",
    }
    with pytest.raises(FormatUnknown, match=f"format {MANIFEST_FORMAT + 1}, this Lockstep reads {MANIFEST_FORMAT}"):
        Manifest.from_bytes(canonical(value))


def changed(key: str, value: object) -> bytes:
    return canonical(json.loads(MANIFEST.to_bytes()) | {key: value})


def with_path(path: str) -> bytes:
    value = json.loads(MANIFEST.to_bytes())
    value["outputs"]["flights"]["files"][0]["path"] = path
    return canonical(value)


@cases(
    "data",
    [
        *(b"", b"{", b"null", b"[]", b"{}", b'"text"', b"\xff\xfe", b'{"format":1}'),
        changed("epoch", -1),
        changed("epoch", "3"),
        changed("token", True),
        changed("pipeline", None),
        changed("outputs", []),
        changed("outputs", {"flights": {"schema": "AAAA", "rows": 1, "digest": "", "files": []}}),
        changed("sources", {"landing": {"rows": 1.5, "quarantined": 0}}),
        *map(with_path, ["../other/part-0.parquet", "/etc/passwd", "a/b.parquet", "..", "", ".hidden", "a\0b"]),
    ],
)
def test_what_is_no_manifest_or_names_files_outside_its_folder_is_corrupt(data: bytes) -> None:
    with pytest.raises(WalCorrupt):
        Manifest.from_bytes(data)
