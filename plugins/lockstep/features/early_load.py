"""Early load: sinks load files while Spark still writes the WAL, where `stage` and `prepare` run in one process.

A sink that supports it gets each file as one of Spark's tasks finishes it, in an open transaction that shows nothing
and that no other process can finish. It is pre-committed only if the sealed manifest names exactly these files: their
sizes, rows and sha256 are those of the bytes that were loaded. Otherwise it is rolled back, and the sink loads the
sealed files. Any error ends an early load without harm: `prepare` meets it again if it lasts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Vote
from lockstep.errors import LockstepError, SinkUnavailable
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.hooks import Feature, StagePart
from lockstep.protocol.prepare import record_vote
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.sweep import sweep_sink
from lockstep.protocol.targets import require_nothing_lost
from lockstep.sinks.base import Sink
from lockstep.sinks.two_phase import EarlyTransaction, TwoPhaseCommitSink
from lockstep.sinks.values import SinkEpoch, Txn
from lockstep.states import Role
from lockstep.wal.manifest import Manifest, WalFile
from lockstep.wal.reading import SealedWal, UnsealedFile

LEAST_BYTES = 1 << 20  #: of the file with which an early load begins: small epochs gain nothing
POLL_SECONDS = 0.05
ALIVE_SECONDS = 60.0  #: after which an idle transaction is used, so that the server doesn't end it
_log = logging.getLogger(__name__)


class EarlyLoads(Feature):
    """The early loads of one run, for a runtime that is this run's own (`Runtime.with_feature`). Loads that no
    `prepare` has taken over are rolled back at the end."""

    def __init__(self) -> None:
        self._loads: dict[str, EarlyLoad] = {}

    def __enter__(self) -> EarlyLoads:
        return self

    def __exit__(self, *_: object) -> None:
        for load in self._loads.values():
            load.give_up()
            load.close()

    def staging(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, *, decided: bool) -> StagePart | None:
        return None if decided else _EarlyPart(self, runtime, attempt, epoch)

    @contextmanager
    def running(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, folder: str) -> Iterator[None]:
        """Load what the job writes into `folder` while it runs."""
        for name in epoch.plan.sinks:
            with suppress(LockstepError):  # `prepare` raises it
                described = runtime.sink_of(epoch, name)
                if described.loads_early and epoch.generation is None:  # rows to be replaced stay free until the seal
                    self._loads[name] = EarlyLoad(runtime, attempt, epoch, described, folder)
        for load in self._loads.values():
            load.start()
        try:
            yield
        except BaseException:
            for load in self._loads.values():
                load.give_up()
            raise
        for load in self._loads.values():
            load.finish()

    def preparing(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, sink: Sink) -> Vote | None:
        """Vote for what was loaded while Spark still wrote, if that is proven to be what is sealed."""
        load = self._loads.pop(sink.name, None)
        if load is None:
            return None
        with closing(load):
            if not load.is_whole():
                return None
            wal = open_wal(runtime.staging, epoch)
            if load.sink is None or not load.holds(wal.manifest):
                _log.info("%s: %s takes what is sealed: other files were loaded early", epoch, sink.name)
                return None
            return unless_superseded(
                partial(_vote, runtime, attempt, epoch, load.sink, load, wal),
                partial(runtime.ledger.require_running, attempt, sink.name, load.token),
            )


class _EarlyPart(StagePart):
    def __init__(self, loads: EarlyLoads, runtime: Runtime, attempt: Attempt, epoch: Epoch) -> None:
        self._loads, self._runtime, self._attempt, self._epoch = loads, runtime, attempt, epoch

    def running(self, folder: str) -> AbstractContextManager[object]:
        return self._loads.running(self._runtime, self._attempt, self._epoch, folder)


def _vote(
    runtime: Runtime, attempt: Attempt, epoch: Epoch, sink: TwoPhaseCommitSink, load: EarlyLoad, wal: SealedWal
) -> Vote | None:
    began = time.monotonic()
    described = runtime.sink_epoch(epoch, load.token)
    sink.refuse_shown(described)
    try:
        txn = load.name_manifest(described)
    except SinkUnavailable as lost:
        _log.info("%s: %s takes what is sealed, its early load was lost: %s", epoch, sink.name, lost)
        return None
    return record_vote(runtime, attempt, epoch, sink, wal, sink.vote_for(txn), began)


@dataclass
class EarlyLoad:
    """One sink's early load, in a thread with connections of its own until it `is_whole`."""

    runtime: Runtime
    attempt: Attempt
    epoch: Epoch
    described: Sink
    folder: str
    token: int = 0
    sink: TwoPhaseCommitSink | None = None
    loaded: dict[str, dict[str, WalFile]] = field(default_factory=dict)  #: by output and name
    schemas: dict[str, pa.Schema] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open: EarlyTransaction | None = None
        self._whole = False
        self._job_over, self._given_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"early load {self.described.name}")

    # --- for the thread that runs the roles ---

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """The job has ended: no more files will appear."""
        self._job_over.set()

    def give_up(self) -> None:
        """Stop behind the file that is being loaded."""
        self._given_up.set()
        self._job_over.set()

    def is_whole(self) -> bool:
        """Wait for the thread; return True if every file of the sink's outputs was loaded."""
        self._thread.join()
        return self._whole

    def holds(self, manifest: Manifest) -> bool:
        """Return True if the loaded files are the sealed ones."""
        sealed = {name: manifest.outputs[name] for name in self.described.outputs}
        return all(
            {file.path: file for file in output.files} == self.loaded.get(name)
            and output.schema.equals(self.schemas.get(name))
            for name, output in sealed.items()
        )

    def name_manifest(self, epoch: SinkEpoch) -> Txn:
        """Turn what was loaded into the sink's branch of `epoch`."""
        assert self._open is not None
        txn = self._open.name_manifest(epoch)
        self._open = None  # the sink's from here on
        return txn

    def close(self) -> None:
        """Roll back what no sink has taken over."""
        self._thread.join()
        with suppress(LockstepError):
            if self._open is not None:
                self._open.close()
        self._open = None
        if self.sink is not None:
            self.sink.close()
            self.sink = None

    # --- the thread ---

    def _run(self) -> None:
        try:
            if self._find_first_files() and self._begin():
                self._load_files()
        except Exception as error:
            _log.info("%s: %s takes what is sealed, its early load failed: %s", self.epoch, self.described.name, error)

    def _find_first_files(self) -> bool:
        """Wait until each output has a file. Return False if the job ends before that."""
        while not self._job_over.wait(POLL_SECONDS):
            first = {output: self._finished(output, LEAST_BYTES) for output in self.described.outputs}
            if all(first.values()):
                self.schemas = {output: self._file(output, names[0]).schema for output, names in first.items()}
                return True
        return False

    def _begin(self) -> bool:
        own = replace(self.runtime, ledger=self.runtime.ledger.clone())
        try:
            own.ledger.require_predecessor_decided(self.epoch)
            if own.epoch_of(self.attempt).wal is not None:  # of another execution, for which a sink may have voted
                return False
            sink = self.described.open(own.sink_context())
            assert isinstance(sink, TwoPhaseCommitSink)
            self.sink = sink
            return self._begin_as_prepare(own, sink)
        finally:
            own.ledger.close()

    def _begin_as_prepare(self, runtime: Runtime, sink: TwoPhaseCommitSink) -> bool:
        reach(CrashPoint.PREPARE_BEFORE_TOKEN)
        self.token = runtime.ledger.take_token(self.attempt, Role.PREPARE, sink.name)
        reach(CrashPoint.PREPARE_AFTER_TOKEN)
        require_nothing_lost(runtime.ledger, runtime.pipeline, sink, self.described)
        sink.preflight(self.schemas)
        reach(CrashPoint.PREPARE_AFTER_PREFLIGHT)
        sweep_sink(runtime, sink, only=self.epoch.id, below=self.token)
        reach(CrashPoint.PREPARE_BEFORE_WRITE)
        unnamed = SinkEpoch(self.epoch.id, self.token, "", self.epoch.planned_at, self.epoch.interval)
        self._open = sink.begin_early(unnamed, self.schemas)
        if self._open is not None:
            reach(CrashPoint.PREPARE_AFTER_MARKER)
        return self._open is not None

    def _load_files(self) -> None:
        used = time.monotonic()
        while not self._given_up.is_set():
            over = self._job_over.is_set()  # read before the files are listed: then the list is complete
            for output in self.described.outputs:
                for name in self._finished(output):
                    if name not in self.loaded.get(output, {}) and not self._given_up.is_set():
                        self._load(self._file(output, name))
                        used = time.monotonic()
            if over:
                self._whole = not self._given_up.is_set()
                return
            if time.monotonic() - used > ALIVE_SECONDS:
                self._transaction.keep_alive()
                used = time.monotonic()
            self._job_over.wait(POLL_SECONDS)

    def _load(self, rows: UnsealedFile) -> None:
        self._transaction.write(rows)
        self.loaded.setdefault(rows.output, {})[rows.file.path] = rows.file

    @property
    def _transaction(self) -> EarlyTransaction:
        assert self._open is not None
        return self._open

    def _finished(self, output: str, least: int = 0) -> list[str]:
        return self.runtime.staging.finished(self.folder, output, least)

    def _file(self, output: str, name: str) -> UnsealedFile:
        return self.runtime.staging.unsealed(self.folder, output, name)
