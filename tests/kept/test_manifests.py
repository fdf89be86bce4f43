"""Manifests as older versions wrote them."""

from __future__ import annotations

from pathlib import Path

from lockstep.wal._local_storage import LocalStorage
from lockstep.wal.manifest import Manifest
from lockstep.wal.reading import OutputBatches

MANIFESTS = Path(__file__).parent / "manifests"


def test_facts_that_stand_in_the_manifest_are_read_there(tmp_path: Path) -> None:
    data = (MANIFESTS / "with_facts_at_955550c.json").read_bytes()
    manifest = Manifest.from_bytes(data)
    assert manifest.facts is None and manifest.to_bytes() == data
    found = OutputBatches(LocalStorage(tmp_path), "nothing is here", manifest.outputs["delays"])
    told = [(facts.rows, {one.path: (one.least, one.greatest) for one in facts.columns}) for _, facts in found.facts()]
    assert [rows for rows, _ in told] == [25, 15]
    assert [bounds["id"] for _, bounds in told] == [(0, 24), (25, 39)]
    assert told[0][1]["tail"] == ("N0", "Nfa8cfb85")
    assert {bounds["lockstep_epoch"] for _, bounds in told} == {(3, 3)}
