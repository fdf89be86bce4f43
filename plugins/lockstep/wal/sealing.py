"""Sealing: verify, hash and sync the files of a finished Spark job. Runs in the task, never in the Spark driver."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from lockstep.errors import NotConfigured, StageFailed
from lockstep.wal._storage import Entry, Kind, Stamp, Storage, is_hidden, naming_errors, plain_children
from lockstep.wal.digest import RowDigest
from lockstep.wal.file_digests import EarlyDigests, EpochColumn, FileDigest, SealedFile, digest_file
from lockstep.wal.manifest import OutputManifest
from lockstep.wal.parquet import fingerprint
from lockstep.wal.table_staging import TableStaging

VARIABLE = "LOCKSTEP_SEAL_BYTES"
_BYTES = 1 << 30


def task_seals() -> int:
    """Maximum bytes of an execution's outputs that the task reads to seal them; beyond it, executors read. Raises
    `NotConfigured`."""
    text = os.environ.get(VARIABLE, str(_BYTES))
    if not text.isdecimal():
        raise NotConfigured(f"{VARIABLE}={text!r} must be a whole number of bytes; 0 leaves all reading to executors")
    return int(text)


QUARANTINE = "quarantine"  #: folder next to the outputs: malformed records, and rows quarantined by audits
_log = logging.getLogger(__name__)
_THREADS = max(2, min(4, os.cpu_count() or 1))


KnownDigests: TypeAlias = Mapping[tuple[str, str], FileDigest]  #: by output and name
NO_DIGESTS: KnownDigests = MappingProxyType({})


@dataclass(frozen=True)
class VerifiedFile:
    """A file digested by an executor; `unchanged`: the task's listing shows the bytes that the executor read."""

    digest: FileDigest
    unchanged: bool


def _compare_listing(
    storage: Storage, folder: str, outputs: Mapping[str, Sequence[Entry]], digests: KnownDigests
) -> dict[tuple[str, str], VerifiedFile]:
    """The digested files, compared with the current listing. Raises `StageFailed` for a missing file."""
    verified = {}
    for output in outputs:
        read_files = {name: file for (its, name), file in digests.items() if its == output}
        stamps = _stamps(storage, f"{folder}/{output}") if read_files else {}
        if missing := sorted(read_files.keys() - stamps.keys()):
            raise StageFailed(f"{folder}/{output}: {', '.join(missing[:3])} is missing, though an executor has read it")
        for name, file in read_files.items():
            unchanged = stamps[name] == file.stamp and file.stamp.etag is not None
            verified[output, name] = VerifiedFile(file, unchanged)
    if changed := [file.digest.name for file in verified.values() if not file.unchanged]:
        _log.info("%s: %s files differ in this listing from what executors read; reading them", folder, len(changed))
    return verified


def seal_outputs(
    storage: Storage,
    folder: str,
    outputs: Iterable[str],
    observed: Mapping[str, int],
    early: EarlyDigests | None = None,
    digests: KnownDigests = NO_DIGESTS,
) -> dict[str, OutputManifest]:
    """Hash, digest, count and sync the content of `folder`, listed once. `observed`: Spark's rows per output;
    `digests`: of executors.

    Raises `StageFailed` if the files don't match the job's counts, and after any failed fsync: the data may be lost,
    and a second fsync would report success. Raises `StagingRefused` for a link, `InvalidPipeline` for a type that can't
    be digested.
    """
    entries = _list_outputs(storage, folder, tuple(outputs))
    sealed = seal_files(storage, entries, early=early, verified=_compare_listing(storage, folder, entries, digests))
    manifests = {output: _output_manifest(output, files, observed.get(output)) for output, files in sealed.items()}
    sync_folders(storage, folder, entries)
    return manifests


def quarantine_of(output: str) -> str:
    """Folder of an output's quarantined rows, relative to an execution's folder. No source folder has such a name."""
    return f"{QUARANTINE}/output={output}"


def seal_quarantine(storage: Storage, folder: str, observed: Mapping[str, int]) -> dict[str, OutputManifest]:
    """Seal the quarantined rows of each output as `seal_outputs`; `observed`: their number, at least one."""
    if not observed:
        return {}
    entries = {output: list_files(storage, f"{folder}/{quarantine_of(output)}") for output in observed}
    sealed = seal_files(storage, entries)
    manifests = {output: _output_manifest(output, files, observed[output]) for output, files in sealed.items()}
    sync_folders(storage, f"{folder}/{QUARANTINE}", [f"output={output}" for output in entries])
    return manifests


def seal_table_staging(
    storage: Storage,
    folder: str,
    output: str,
    observed: int | None,
    home: TableStaging,
    epoch: int,
    digests: KnownDigests = NO_DIGESTS,
) -> OutputManifest:
    """Seal one output in table staging as `seal_outputs`; `folder` is relative to its storage. Also raises
    `StageFailed` if a row has another epoch."""
    place = f"{folder}/{output}"
    entries = {output: list_files(storage, place)}
    before = _stamps(storage, place)
    verified = _compare_listing(storage, folder, entries, digests)
    [files] = seal_files(
        storage, entries, epoch_column=EpochColumn(home.epoch_column, epoch), verified=verified
    ).values()
    with_etags = _stamped(place, files, before, _stamps(storage, place))
    manifest = replace(_output_manifest(output, with_etags, observed), home=home)
    sync_folders(storage, folder, entries)
    return manifest


def _stamps(storage: Storage, folder: str) -> dict[str, Stamp]:
    with naming_errors("list", folder):
        return storage.stamps(folder)


def _stamped(
    folder: str, files: Iterable[SealedFile], before: Mapping[str, Stamp], after: Mapping[str, Stamp]
) -> list[SealedFile]:
    """The files with the etag of the bytes that were read. Raises `StageFailed` for a file that changed meanwhile."""
    with_etags = []
    for sealed in files:
        file, stamp = sealed.file, after.get(sealed.file.path)
        if stamp is None or stamp != before.get(file.path) or stamp.size != file.bytes:
            raise StageFailed(f"{folder}/{file.path} changed while it was sealed: does another process write there?")
        with_etags.append(replace(sealed, file=replace(file, etag=stamp.etag)))
    return with_etags


def seal_files(
    storage: Storage,
    entries_by_name: Mapping[str, Sequence[Entry]],
    min_column: str | None = None,
    early: EarlyDigests | None = None,
    epoch_column: EpochColumn | None = None,
    verified: Mapping[tuple[str, str], VerifiedFile] = MappingProxyType({}),
) -> dict[str, list[SealedFile]]:
    """Hash, digest, count and sync Parquet files by name.

    `min_column`: column whose minimum is computed; `early`: digests to reuse for the same bytes; `epoch_column`: last
    column, which isn't digested; `verified`: digests of executors.
    """
    names = [(name, entry) for name, entries in entries_by_name.items() for entry in entries]

    def seal(named_entry: tuple[str, Entry]) -> SealedFile:
        name, entry = named_entry
        return _seal_file(storage, entry, min_column, early, epoch_column, verified.get((name, entry.name)))

    with ThreadPoolExecutor(_THREADS, "seal") as pool:
        sealed = list(pool.map(seal, names))
    by_name: dict[str, list[SealedFile]] = {name: [] for name in entries_by_name}
    for (name, _), file in zip(names, sealed, strict=True):
        by_name[name].append(file)
    return by_name


def _list_outputs(storage: Storage, folder: str, outputs: tuple[str, ...]) -> dict[str, list[Entry]]:
    with naming_errors("list", folder):
        folders = [
            entry for entry in plain_children(storage, folder) if not is_hidden(entry) and entry.name != QUARANTINE
        ]
    wrong = [entry.name for entry in folders if entry.kind is not Kind.FOLDER or entry.name not in outputs]
    missing = sorted(set(outputs) - {entry.name for entry in folders})
    if wrong or missing:
        raise StageFailed(f"{folder}: the job left {wrong or 'nothing else'}, and no folder for {missing or 'none'}")
    return {entry.name: list_files(storage, entry.path) for entry in folders}


def list_files(storage: Storage, folder: str) -> list[Entry]:
    """Parquet files that Spark left in `folder`, at least one. Raises `StageFailed` for none or anything else."""
    with naming_errors("list", folder):
        files = [entry for entry in plain_children(storage, folder) if not is_hidden(entry)]
    wrong = [entry.name for entry in files if entry.kind is not Kind.FILE or not entry.name.endswith(".parquet")]
    if wrong:
        raise StageFailed(f"{folder}: found {wrong}, expected only Parquet files; outputs can't be partitioned")
    if not files:
        raise StageFailed(f"{folder}: no file; Spark writes one, with the schema, even for an empty output")
    return files


def _seal_file(
    storage: Storage,
    entry: Entry,
    min_column: str | None,
    early: EarlyDigests | None,
    epoch_column: EpochColumn | None,
    verified: VerifiedFile | None,
) -> SealedFile:
    _sync(storage, entry.path)
    if verified and verified.unchanged:
        return verified.digest.sealed()
    with naming_errors("read", entry.path):
        content = fingerprint(storage, entry.path)
    if verified and verified.digest.sha256 != content.sha256:
        raise StageFailed(f"{entry.path} changed since an executor read it: does another process write there?")
    digested = early.find(entry.path, content) if early and not min_column else None
    digested = digested or digest_file(storage, entry.path, content, min_column, epoch_column)
    return SealedFile.of(entry.name, content.size, content.sha256, digested)


def _output_manifest(output: str, files: list[SealedFile], observed: int | None) -> OutputManifest:
    first = files[0]
    total = RowDigest(first.schema)
    for file in files:
        if not file.schema.equals(first.schema):
            raise StageFailed(
                f"output {output}: {file.file.path} has the schema {file.schema.to_string()}, "
                f"{first.file.path} has {first.schema.to_string()}"
            )
        total.merge(file.digest)
    if observed != total.rows:
        raise StageFailed(f"output {output}: Spark observed {observed} rows, the files hold {total.rows}")
    return OutputManifest(output, first.schema, total.rows, total.hexdigest(), tuple(file.file for file in files))


def sync_folders(storage: Storage, folder: str, outputs: Iterable[str]) -> None:
    """Make every name on the way to a file durable; parents may have been created by another execution just now."""
    for output in outputs:
        _sync(storage, f"{folder}/{output}")
    parts = folder.split("/")
    for depth in range(len(parts), -1, -1):
        _sync(storage, "/".join(parts[:depth]))


def _sync(storage: Storage, path: str) -> None:
    try:
        storage.sync(path)
    except OSError as error:
        raise StageFailed(f"fsync of {path or 'staging'} failed, its content may be lost: {error.strerror}") from error
