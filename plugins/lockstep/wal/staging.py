"""Staging of WALs: `<deployment>/<pipeline>/epoch=<id>/<token>/<output>/part-*.parquet` and `_manifest.json`.

Each execution has its own folder. Only the folder whose manifest hash is in the ledger is a WAL; others are garbage.
Archives are in `manifests/`, `quarantine/` and `audits/` next to the epochs, keyed state is in `state/`.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Container, Iterable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from types import MappingProxyType
from typing import NamedTuple

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, require_name
from lockstep.errors import (
    InvalidPipeline,
    StageFailed,
    StagingRefused,
    StagingUnavailable,
    WalCorrupt,
)
from lockstep.wal._storage import (
    Entry,
    Kind,
    Storage,
    delete_folder,
    finished_files,
    move_files,
    naming_errors,
    remove_empty_folder,
    tree,
)
from lockstep.wal.digest import DIGEST_VERSION
from lockstep.wal.file_digests import EarlyDigests, digesting_early
from lockstep.wal.manifest import (
    FACTS,
    Manifest,
    Quarantined,
    SealedState,
    SourceCount,
    canonical,
    facts_of,
    without_facts,
)
from lockstep.wal.reading import OutputBatches, SealedWal, UnsealedFile, naming_damage
from lockstep.wal.sealing import (
    NO_DIGESTS,
    QUARANTINE,
    KnownDigests,
    quarantine_of,
    seal_outputs,
    seal_quarantine,
    seal_table_staging,
)
from lockstep.wal.state_staging import STATE, StateStaging
from lockstep.wal.storages import storage_at
from lockstep.wal.table_staging import TableStaging, TableStagingFolders

MANIFEST = "_manifest.json"
_MANIFESTS = "manifests"
_SAMPLES = "audits"
_NUMBER = "(0|[1-9][0-9]{0,17})"
_EPOCH = re.compile(f"epoch={_NUMBER}")
_TOKEN = re.compile(_NUMBER)
_ARCHIVED_MANIFEST = re.compile(rf"epoch={_NUMBER}\.json")
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SMALL_FILE = re.compile(r"_[a-z]+\.json")


class Execution(NamedTuple):
    """Folder of one execution of `stage`, relative to staging."""

    epoch: int
    token: int
    folder: str


class Staging:
    """All WALs below one URI: file:///…, an absolute path, s3://… or hdfs://….

    Every call raises `StagingUnavailable` if the storage fails (space, permission, no answer) and `StagingRefused` for
    a path that is not Lockstep's or contains a symbolic link.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._storage: Storage = storage_at(uri)

    # --- an execution's folder ---

    def folder(self, deployment: str, pipeline: str, epoch: int, token: int) -> str:
        """`<deployment>/<pipeline>/epoch=<id>/<token>`; creates nothing."""
        return f"{_home(deployment, pipeline)}/epoch={epoch}/{token}"

    def uri_of(self, relative: str) -> str:
        """Absolute URI for Spark (s3a:// for S3). Not percent-encoded, as Hadoop requires."""
        return self._storage.uri_of(relative)

    def address_of(self, relative: str) -> str:
        """`uri_of` with the options (`?endpoint_override=…`) that another process's Staging needs."""
        options = self._storage.options
        return f"{self.uri_of(relative)}?{options}" if options else self.uri_of(relative)

    def create(self, folder: str) -> None:
        """Create an execution's folder, exclusively and durably. Raises `StagingRefused` if it exists."""
        _parse(folder)
        for _ in range(3):  # a sweep may remove the empty epoch=<id> meanwhile
            with naming_errors("create", folder), suppress(FileNotFoundError):
                try:
                    return self._storage.make_folder(folder)
                except FileExistsError as error:
                    raise StagingRefused(f"{folder} exists already: an execution's folder is created once") from error
        raise StagingUnavailable(f"staging can't create {folder}: its parent was deleted repeatedly")

    def write_json(self, folder: str, name: str, value: Json) -> None:
        """Write a small file such as `_request.json`, atomically and durably. Raises `StagingRefused` if it exists."""
        self._create(f"{folder}/{_small(name)}", canonical(value))

    def read_json(self, folder: str, name: str) -> Json:
        """Content of a file by `write_json`. Raises `StageFailed` if it is missing or invalid JSON."""
        path = f"{folder}/{_small(name)}"
        try:
            return json.loads(self._read(path))
        except FileNotFoundError as error:
            raise StageFailed(f"{path} is missing: the job ended before writing it") from error
        except ValueError as error:
            raise StageFailed(f"{path} isn't JSON: {error}") from error

    def has_json(self, folder: str, name: str) -> bool:
        """Whether the file exists."""
        path = f"{folder}/{_small(name)}"
        with naming_errors("look at", path):
            return self._storage.exists(path)

    # --- sealing and reading ---

    def digesting_early(
        self, folder: str, outputs: Iterable[str], max_bytes: int
    ) -> AbstractContextManager[EarlyDigests]:
        """Digest files of the job that writes `outputs` into `folder` while it runs, up to `max_bytes`."""
        return digesting_early(self._storage, tuple(f"{folder}/{output}" for output in outputs), max_bytes)

    def finished(self, folder: str, output: str, min_bytes: int = 0) -> list[str]:
        """Names of finished files of `output` of at least `min_bytes`, while the job may still be running. None on
        storage where polling is expensive."""
        if not self._storage.shows_files_whole:
            return []
        with naming_errors("list", folder), suppress(FileNotFoundError):
            paths = finished_files(self._storage, f"{folder}/{output}", min_bytes)
            return [path.rpartition("/")[2] for path in paths]
        return []

    def unsealed(self, folder: str, output: str, name: str) -> UnsealedFile:
        """Rows of a file named by `finished`. Raises `WalCorrupt`, `StagingUnavailable`."""
        return UnsealedFile(self._storage, folder, output, name)

    def seal(
        self,
        folder: str,
        *,
        deployment: str,
        pipeline: str,
        epoch: int,
        token: int,
        outputs: tuple[str, ...],
        observed: Mapping[str, int],
        sources: Mapping[str, SourceCount],
        state: SealedState | None = None,
        balances: Mapping[str, Mapping[str, int]] | None = None,
        early: EarlyDigests | None = None,
        homes: Mapping[str, TableStaging] = MappingProxyType({}),
        digests: KnownDigests = NO_DIGESTS,
        quarantined: Mapping[str, tuple[int, Mapping[str, int]]] = MappingProxyType({}),
    ) -> Manifest:
        """Seal the output of a finished job in `folder`: sync, hash and count its files, and create the manifest last.

        `observed`: rows per output from `DataFrame.observe`; `state`: from `StateStaging.seal`; `early`: from
        `digesting_early`; `digests`: of executors; `homes`: table staging of outputs; `quarantined`: by output whose
        rows audits may quarantine, the number of rows, and of offending rows per audit. Raises `StageFailed` if files
        differ from the counts or can't be made durable, `StagingRefused` if there is a manifest. After an error the
        folder is garbage.
        """
        if folder != self.folder(deployment, pipeline, epoch, token):
            raise StagingRefused(f"{folder} isn't the folder of {deployment}/{pipeline} epoch {epoch}, token {token}")
        for output in outputs:
            if require_name("output", output) == QUARANTINE:
                raise InvalidPipeline(f"no output may be named {QUARANTINE}: that folder is for malformed records")
        staged = tuple(output for output in outputs if output not in homes)
        sealed_outputs = seal_outputs(self._storage, folder, staged, observed, early, digests)
        for output in outputs:
            if output in homes:
                folders = self.home(homes[output], deployment, pipeline)
                sealed_outputs[output] = seal_table_staging(
                    folders.storage,
                    folders.folder(epoch, token),
                    output,
                    observed.get(output),
                    homes[output],
                    epoch,
                    digests,
                )
        quarantine = seal_quarantine(
            self._storage, folder, {name: rows for name, (rows, _) in quarantined.items() if rows}
        )
        manifest = Manifest(
            deployment,
            pipeline,
            epoch,
            token,
            without_facts(sealed_outputs),
            dict(sources),
            DIGEST_VERSION,
            state,
            balances or {},
            self._note(folder, facts_of(sealed_outputs)),
            {name: Quarantined(dict(audits), quarantine.get(name)) for name, (_, audits) in quarantined.items()},
        )
        reach(CrashPoint.STAGE_BEFORE_MANIFEST)
        self._create(f"{folder}/{MANIFEST}", manifest.to_bytes())
        reach(CrashPoint.STAGE_AFTER_MANIFEST)
        return manifest

    def seal_restored(
        self,
        folder: str,
        of: SealedWal,
        *,
        deployment: str,
        pipeline: str,
        epoch: int,
        token: int,
        homes: Mapping[str, TableStaging] = MappingProxyType({}),
    ) -> Manifest:
        """Seal a WAL with the rows of another one. It references that one's files; outputs in table staging (`homes`)
        were rewritten by `rewrite_for_table`.

        Arguments and errors as of `seal`; also raises `StageFailed` if rewritten rows differ.
        """
        sealed = {name: output for name, output in of.manifest.outputs.items() if output.home is None}
        for name, home in homes.items():
            folders, original = self.home(home, deployment, pipeline), of.manifest.outputs[name]
            restored = seal_table_staging(
                folders.storage, folders.folder(epoch, token), name, original.rows, home, epoch
            )
            if (restored.digest, restored.columns) != (original.digest, original.columns):
                raise StageFailed(f"{folder}: the rewritten rows of output {name} differ from those of {of.folder}")
            sealed[name] = restored
        rows_in = of.manifest.rows_in or of.folder
        manifest = Manifest(
            deployment,
            pipeline,
            epoch,
            token,
            without_facts(sealed),
            of.manifest.sources,
            of.manifest.digest_version,
            balances=of.manifest.balances,
            facts=self._note(folder, facts_of(sealed)),
            rows_in=rows_in,
        )
        reach(CrashPoint.STAGE_BEFORE_MANIFEST)
        self._create(f"{folder}/{MANIFEST}", manifest.to_bytes())
        reach(CrashPoint.STAGE_AFTER_MANIFEST)
        return manifest

    def _note(self, folder: str, facts: bytes | None) -> str | None:
        if facts is None:
            return None
        reach(CrashPoint.STAGE_BEFORE_FACTS)
        self._create(f"{folder}/{FACTS}", facts)
        return hashlib.sha256(facts).hexdigest()

    def open(self, wal: str, manifest_hash: str) -> SealedWal:
        """The sealed WAL in folder `wal`. Raises `WalCorrupt` unless its manifest exists and has this hash."""
        _parse(wal)
        manifest = self._manifest(f"{wal}/{MANIFEST}", manifest_hash)
        expected = self.folder(manifest.deployment, manifest.pipeline, manifest.epoch, manifest.token)
        if expected != wal:
            raise WalCorrupt(f"{wal} holds the manifest of {expected}")
        if manifest.rows_in is not None:
            _parse(manifest.rows_in)
        return SealedWal(self._storage, wal, manifest, self._find_home)

    def at_home(self, manifest: Manifest) -> SealedWal:
        """The sealed outputs in table staging of an archived manifest. They exist while the adopting tables keep the
        files."""
        folder = self.folder(manifest.deployment, manifest.pipeline, manifest.epoch, manifest.token)
        return SealedWal(self._storage, folder, manifest, self._find_home)

    def quarantined(self, manifest: Manifest, output: str, *, archived: bool) -> OutputBatches | None:
        """Sealed quarantined rows of an output, or None. `archived`: read those that cleanup archived."""
        quarantined = manifest.quarantined.get(output)
        if quarantined is None or quarantined.sealed is None:
            return None
        wal = self.folder(manifest.deployment, manifest.pipeline, manifest.epoch, manifest.token)
        place = self.quarantine_folder(wal, archived=archived)
        return OutputBatches(self._storage, f"{place}/{quarantine_of(output).partition('/')[2]}", quarantined.sealed)

    def quarantine_folder(self, wal: str, *, archived: bool) -> str:
        """Folder of a WAL's quarantine, or of its archive."""
        deployment, pipeline, epoch = _parse(wal)
        return _archived_quarantine(deployment, pipeline, epoch) if archived else f"{wal}/{QUARANTINE}"

    def is_quarantine_archived(self, wal: str) -> bool:
        """Whether `archive` has moved the WAL's quarantine completely."""
        return not self._has_files(f"{wal}/{QUARANTINE}") and self._has_files(_archived_quarantine(*_parse(wal)))

    def _has_files(self, folder: str) -> bool:
        with naming_errors("list", folder), suppress(FileNotFoundError):
            return any(entry.kind is Kind.FILE for entry in tree(self._storage, folder))
        return False

    def home(self, home: TableStaging, deployment: str, pipeline: str) -> TableStagingFolders:
        """The pipeline's folders in an output's table staging."""
        _home(deployment, pipeline)
        return TableStagingFolders(storage_at(home.table), deployment, pipeline)

    def _find_home(self, home: TableStaging, manifest: Manifest) -> tuple[Storage, str]:
        there = self.home(home, manifest.deployment, manifest.pipeline)
        return there.storage, there.folder(manifest.epoch, manifest.token)

    def state(self, deployment: str, pipeline: str) -> StateStaging:
        """The pipeline's keyed state."""
        return StateStaging(self._storage, _home(deployment, pipeline))

    def manifest(self, wal: str, manifest_hash: str) -> Manifest:
        """Manifest of a sealed WAL, also after cleanup. Raises `WalCorrupt`."""
        deployment, pipeline, epoch = _parse(wal)
        try:
            return self._manifest(f"{wal}/{MANIFEST}", manifest_hash)
        except WalCorrupt:
            return self.kept_manifest(deployment, pipeline, epoch, manifest_hash)

    def kept_manifest(self, deployment: str, pipeline: str, epoch: int, manifest_hash: str) -> Manifest:
        """Archived manifest of a cleaned epoch. Raises `WalCorrupt` if it is missing or has another hash."""
        return self._manifest(_manifest_path(deployment, pipeline, epoch), manifest_hash)

    def kept_quarantine_manifest(self, deployment: str, pipeline: str, epoch: int, manifest_hash: str) -> Manifest:
        """Archived manifest of a restaged WAL whose quarantine was archived. Raises as `kept_manifest`."""
        return self._manifest(f"{_archived_quarantine(deployment, pipeline, epoch)}/{MANIFEST}", manifest_hash)

    def _manifest(self, path: str, manifest_hash: str) -> Manifest:
        with naming_damage(self._storage, path):
            data = self._bytes(path)
            actual = hashlib.sha256(data).hexdigest()
            if actual != manifest_hash:
                data = self._bytes(path, fresh=True)
                actual = hashlib.sha256(data).hexdigest()
        if actual != manifest_hash:
            raise WalCorrupt(f"{path} hashes to {actual}, the ledger has {manifest_hash}")
        return Manifest.from_bytes(data)

    # --- in what condition it is ---

    def try_out(self) -> None:
        """Create, read and delete a small file and a folder as an execution does. Raises `StagingUnavailable`, and
        `StagingRefused` if a file can be created twice."""
        folder = f"_tried-{secrets.token_hex(8)}"
        path = f"{folder}/{MANIFEST}"
        with naming_errors("write", folder):
            self._storage.make_folder(folder)
            try:
                self._storage.create(path, b"{}")
                with suppress(FileExistsError):
                    self._storage.create(path, b"{}")
                    raise StagingRefused(
                        "staging allows creating a file twice, so two executions could write one manifest: use a file "
                        "system with hard links, or a store with conditional puts"
                    )
                with closing(self._storage.open(path)) as file:
                    if file.read() != b"{}":
                        raise StagingRefused("staging returns other bytes than were written")
            finally:
                with suppress(FileNotFoundError):
                    self._storage.delete(path)
                self._storage.remove_folder(folder)

    def free_bytes(self) -> int | None:
        """Free bytes; None if unknown, as on an object store. Raises `StagingUnavailable`."""
        with naming_errors("look at", ""):
            return self._storage.free_bytes()

    def pipelines(self, deployment: str) -> list[str]:
        """Pipelines with a folder in the deployment, including those that the ledger doesn't know."""
        return [entry.name for entry in self._children(deployment) if entry.kind is Kind.FOLDER]

    # --- what lies around ---

    def executions(
        self, deployment: str, pipeline: str, *, only: int | None = None, exclude: Container[int] = ()
    ) -> list[Execution]:
        """(epoch, token, folder) of each execution, in order. Other entries: see `unknown_files`.

        `only`: one epoch. `exclude`: epochs whose folders aren't listed, which keeps thousands of retained ones cheap.
        """
        if only is not None:
            return sorted(self._survey_epoch(only, f"{_home(deployment, pipeline)}/epoch={only}")[0])
        return self._survey(deployment, pipeline, exclude)[0]

    def unknown_files(self, deployment: str, pipeline: str, *, exclude: Container[int] = ()) -> list[str]:
        """Entries among the executions' folders that aren't Lockstep's; they are never touched."""
        return self._survey(deployment, pipeline, exclude)[1]

    def _survey_epoch(self, epoch: int, folder: str) -> tuple[list[Execution], list[str]]:
        executions: list[Execution] = []
        unknown: list[str] = []
        for inner in self._children(folder):
            if inner.kind is Kind.FOLDER and _TOKEN.fullmatch(inner.name):
                executions.append(Execution(epoch, int(inner.name), inner.path))
            else:
                unknown.append(inner.path)
        return executions, unknown

    def _survey(self, deployment: str, pipeline: str, exclude: Container[int]) -> tuple[list[Execution], list[str]]:
        home = _home(deployment, pipeline)
        executions: list[Execution] = []
        unknown: list[str] = []
        for entry in self._children(home):
            epoch = _EPOCH.fullmatch(entry.name)
            if entry.kind is Kind.FOLDER and epoch:
                if int(epoch[1]) not in exclude:
                    own, foreign = self._survey_epoch(int(epoch[1]), entry.path)
                    executions += own
                    unknown += foreign
            elif entry.kind is not Kind.FOLDER or entry.name not in (_MANIFESTS, QUARANTINE, STATE, _SAMPLES):
                unknown.append(entry.path)
        return sorted(executions), unknown

    def _children(self, folder: str) -> list[Entry]:
        with naming_errors("list", folder), suppress(FileNotFoundError):
            return self._storage.children(folder)
        return []

    # --- letting go ---

    def discard(
        self,
        folder: str,
        *,
        before: CrashPoint = CrashPoint.ROLLBACK_BEFORE_FOLDER,
        after: CrashPoint = CrashPoint.ROLLBACK_AFTER_FOLDER,
    ) -> None:
        """Delete an execution's folder file by file; already deleted parts are fine. Check the ledger first.

        Raises `StagingRefused`, before anything is deleted, if `folder` isn't an execution's or contains a link, and
        `StagingUnavailable` if files are added meanwhile.
        """
        _parse(folder)
        with naming_errors("delete", folder):
            delete_folder(self._storage, folder, before, after)
            remove_empty_folder(self._storage, folder.rpartition("/")[0], over=False)

    def discard_epoch(
        self,
        deployment: str,
        pipeline: str,
        epoch: int,
        *,
        exclude: str | None = None,
        before: CrashPoint = CrashPoint.CLEANUP_BEFORE_DELETE,
        after: CrashPoint = CrashPoint.CLEANUP_AFTER_DELETE,
    ) -> None:
        """Delete all executions' folders of an epoch but `exclude`; unknown files stay. Idempotent."""
        folder = f"{_home(deployment, pipeline)}/epoch={epoch}"
        for entry in self._children(folder):
            if entry.kind is Kind.FOLDER and _TOKEN.fullmatch(entry.name) and entry.path != exclude:
                self.discard(entry.path, before=before, after=after)
        with naming_errors("delete", folder):
            remove_empty_folder(self._storage, folder, over=exclude is None)

    def archive(self, wal: str, deployment: str, pipeline: str, epoch: int, rows: str | None = None) -> None:
        """Archive a WAL's manifest as `manifests/epoch=<id>.json` and its quarantine under `quarantine/epoch=<id>/`.

        `rows`: the folder with the quarantine, if it is another one. Idempotent.
        """
        _parse(wal)
        _parse(rows or wal)
        archived = _archived_quarantine(deployment, pipeline, epoch)
        with naming_errors("archive", wal):
            with suppress(FileNotFoundError):
                self._storage.replace(_manifest_path(deployment, pipeline, epoch), self._bytes(f"{wal}/{MANIFEST}"))
            if rows not in (None, wal):  # the archived quarantine belongs to this manifest
                with suppress(FileNotFoundError):
                    self._storage.replace(f"{archived}/{MANIFEST}", self._bytes(f"{rows}/{MANIFEST}"))
            move_files(self._storage, f"{rows or wal}/{QUARANTINE}", archived)

    def keep_samples(self, wal: str, samples: Json) -> str:
        """Store samples of rows that offend audits as `audits/epoch=<id>/<token>.json`; returns the path.
        Idempotent."""
        deployment, pipeline, epoch = _parse(wal)
        path = f"{_home(deployment, pipeline)}/{_SAMPLES}/epoch={epoch}/{wal.rpartition('/')[2]}.json"
        with naming_errors("write", path):
            self._storage.replace(path, json.dumps(samples, indent=1, default=str).encode())
        return path

    def keep_plan(self, deployment: str, pipeline: str, epoch: int, plan: Json) -> None:
        """Store an epoch's plan next to its manifest, for a rebuild of a lost ledger. Idempotent."""
        path = _plan_path(deployment, pipeline, epoch)
        with naming_errors("archive", path):
            self._storage.replace(path, canonical(plan))

    def kept_plan(self, deployment: str, pipeline: str, epoch: int) -> Json | None:
        """The plan stored by `keep_plan`, or None. Raises `WalCorrupt` for invalid JSON."""
        path = _plan_path(deployment, pipeline, epoch)
        with suppress(FileNotFoundError):
            try:
                return json.loads(self._read(path))
            except ValueError as error:
                raise WalCorrupt(f"{path} isn't JSON: {error}") from error
        return None

    def kept_epochs(self, deployment: str, pipeline: str) -> list[int]:
        """Epochs with an archived manifest, in order: they are published in every sink."""
        entries = self._children(f"{_home(deployment, pipeline)}/{_MANIFESTS}")
        return sorted(int(match[1]) for entry in entries if (match := _ARCHIVED_MANIFEST.fullmatch(entry.name)))

    def deployments(self) -> list[str]:
        """Ids of the ledgers that have staged anything."""
        return [entry.name for entry in self._children("") if entry.kind is Kind.FOLDER and _ID.fullmatch(entry.name)]

    # --- small files ---

    def _create(self, path: str, data: bytes) -> None:
        with naming_errors("write", path):
            try:
                self._storage.create(path, data)
            except FileExistsError as error:
                raise StagingRefused(f"{path} exists already and is written only once") from error

    def _read(self, path: str) -> bytes:
        try:
            return self._bytes(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StagingUnavailable(f"staging can't read {path}: {error.strerror or error}") from error

    def _bytes(self, path: str, fresh: bool = False) -> bytes:
        file = self._storage.open(path, fresh)
        try:
            return file.read()
        finally:
            file.close()


def _home(deployment: str, pipeline: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", deployment):
        raise StagingRefused(f"{deployment!r} is no deployment's id")
    return f"{deployment}/{require_name('pipeline', pipeline)}"


def _manifest_path(deployment: str, pipeline: str, epoch: int) -> str:
    return f"{_home(deployment, pipeline)}/{_MANIFESTS}/epoch={epoch}.json"


def _archived_quarantine(deployment: str, pipeline: str, epoch: int) -> str:
    return f"{_home(deployment, pipeline)}/{QUARANTINE}/epoch={epoch}"


def _plan_path(deployment: str, pipeline: str, epoch: int) -> str:
    return f"{_home(deployment, pipeline)}/{_MANIFESTS}/epoch={epoch}.plan.json"


def _parse(folder: str) -> tuple[str, str, int]:
    """Deployment, pipeline and epoch of an execution's folder. Raises `StagingRefused` for any other path."""
    parts = folder.split("/")
    if len(parts) != 4 or not _EPOCH.fullmatch(parts[2]) or not _TOKEN.fullmatch(parts[3]):
        raise StagingRefused(f"{folder!r} isn't <deployment>/<pipeline>/epoch=<id>/<token>")
    _home(parts[0], parts[1])
    return parts[0], parts[1], int(parts[2].partition("=")[2])


def _small(name: str) -> str:
    if not _SMALL_FILE.fullmatch(name):
        raise StagingRefused(f"{name!r}: small files are named _<letters>.json")
    return name
