"""What the seal has noted of the files that tables are to adopt: `_facts.json`, beside the manifest, which has its
sha256.

Least and greatest values of columns stand in it, which are values of rows. So it goes with the WAL, and the manifest,
which stays for good, has none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lockstep.epoch import Json
from lockstep.errors import WalCorrupt
from lockstep.wal.file_facts import FileFacts, leaves_of
from lockstep.wal.manifest import OutputManifest, canonical

FACTS = "_facts.json"


def facts_of(outputs: Mapping[str, OutputManifest]) -> bytes | None:
    """What `_facts.json` has to say of these outputs; None if no table adopts any."""
    told = {name: _facts_of(output) for name, output in outputs.items() if output.home is not None}
    return canonical(told) if told else None


def _facts_of(output: OutputManifest) -> Json:
    return {file.path: file.facts.to_json() for file in output.files if file.facts is not None}


def without_facts(outputs: Mapping[str, OutputManifest]) -> dict[str, OutputManifest]:
    """As the manifest has them."""
    return {
        name: replace(output, files=tuple(replace(file, facts=None) for file in output.files))
        for name, output in outputs.items()
    }


class NotedFacts:
    """What a `_facts.json` says. Raises `WalCorrupt` unless `data` hashes to what the manifest has."""

    def __init__(self, path: str, data: bytes, sha256: str) -> None:
        self._path, found = path, hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise WalCorrupt(f"{path}: sha256 found {found}, the manifest has {sha256}")
        self._told: dict[str, dict[str, Json]] = json.loads(data)

    def of(self, output: OutputManifest) -> dict[str, FileFacts]:
        """Of each file of an output that has a home, by its name. Raises `WalCorrupt` for one that isn't there."""
        schema = output.schema.append(pa.field(output.home.epoch_column, pa.int64())) if output.home else output.schema
        leaves = leaves_of(schema)
        try:
            told = self._told[output.name]
            return {file.path: FileFacts.from_json(told[file.path], file.rows, schema, leaves) for file in output.files}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WalCorrupt(f"{self._path} can't be understood: {type(error).__name__}: {error}") from error
