"""doctor: check everything that an epoch needs from this machine; one sentence and one command for each problem.

It asks what the roles would ask. Nothing is decided, published or deleted; it creates only what an epoch would create:
a small file in staging, and objects of a sink's preflight.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from lockstep.distribution import DISTRIBUTION
from lockstep.epoch import Epoch, Json
from lockstep.errors import InvalidPipeline, LockstepError, RestateRefused, UnknownEpoch
from lockstep.features.assembly import runtime_for
from lockstep.features.inputs import report_input
from lockstep.features.restoring import plan_restored
from lockstep.ledger import Ledger, migrate
from lockstep.ledger.administration import LedgerCondition, examine_ledger
from lockstep.ledger.report import PipelineStatus, Report
from lockstep.observability import suggestions
from lockstep.pipeline import Pipeline
from lockstep.protocol.identity import require_known_markers
from lockstep.protocol.planned_sinks import find_changed_sinks
from lockstep.protocol.recover import known_sinks, recover
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import DeletionGuard, find_rubbish, kept_epochs, require_known_epoch
from lockstep.protocol.targets import find_last_shown, require_same_target, require_shown_still, said_to_lack
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Publication
from lockstep.spark import versions as spark
from lockstep.spark.address import listens_at
from lockstep.states import DECIDED, UNDECIDED, EpochState
from lockstep.wal.staging import Staging

MIGRATE = "`lockstep migrate`"
_CLOCKS = timedelta(seconds=5)
_LEAST_FREE = 1 << 30
_EPOCHS = 100  #: the youngest, whose markers are looked for
_SHOWN = (EpochState.PUBLISHED, EpochState.CLEANED)
_SPARK_WAIT = 5.0  #: seconds for Spark's port to answer


class Severity(StrEnum):
    """Severity of a finding."""

    FINE = "fine"
    WARNING = "warning"  #: epochs go on
    BROKEN = "broken"  #: an epoch would fail, or is stuck


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `command`: what mends it; None where no command does, or nothing is amiss."""

    check: str  #: versions, spark, staging, disk, ledger, rights, connections, clock, epochs, sinks, wal or drift
    about: str  #: which: a pipeline, a sink of it, or "" where there is but one
    severity: Severity
    says: str
    command: str | None = None


@dataclass(frozen=True)
class Surroundings:
    """The systems to examine; None for one that wasn't given."""

    ledger: str | None
    staging: str | None
    spark: str | None
    connections: Mapping[str, str]
    define: Callable[[str], Pipeline | None] = lambda _: None  #: the definition of a pipeline, where it can be had


def examine(surroundings: Surroundings, only: str | None = None) -> Iterator[Finding]:
    """Run every check for one pipeline or all, yielding findings as they are made. An error of a check is a finding
    too."""
    yield from _versions()
    yield from _guarded("spark", "", lambda: _spark(surroundings.spark))
    tried = list(_guarded("staging", "", lambda: _staging(surroundings.staging)))
    yield from tried
    usable = all(finding.severity is not Severity.BROKEN for finding in tried)
    ledger = list(_guarded("ledger", "", lambda: _ledger(surroundings.ledger)))
    yield from ledger
    if usable and all(finding.severity is not Severity.BROKEN for finding in ledger):
        yield from _guarded("epochs", only or "", lambda: _pipelines(surroundings, only))


def mend(finding: Finding, surroundings: Surroundings) -> bool:
    """Run `finding.command` if it is safe at any time: create a missing ledger, or do one round of recovery. An
    existing ledger isn't migrated, because older releases would refuse it.

    Returns True if it was done and nothing is left. Raises `LockstepError`.
    """
    if finding.command == MIGRATE and surroundings.ledger is not None:
        if examine_ledger(surroundings.ledger).migration:
            return False
        migrate(surroundings.ledger)
        return True
    if finding.about and finding.command == suggestions.recover(finding.about):
        with _runtime(surroundings, finding.about) as runtime:
            return recover(runtime).complete
    return False


def _guarded(check: str, about: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of `look`; an error becomes a finding."""
    try:
        yield from look()
    except LockstepError as error:
        yield Finding(check, about, Severity.BROKEN, str(error))


def _fine(check: str, about: str, says: str) -> Finding:
    return Finding(check, about, Severity.FINE, says)


def _versions() -> Iterator[Finding]:
    """Compare installed packages with the release's requirements; missing packages are ignored."""
    checked, wrong = 0, []
    for text in metadata.requires(DISTRIBUTION) or ():
        needed = Requirement(text)
        if needed.name in spark.PACKAGES:
            continue
        try:
            installed = metadata.version(needed.name)
        except metadata.PackageNotFoundError:
            continue
        checked += 1
        if not needed.specifier.contains(installed, prereleases=True):
            wrong.append((needed, installed))
    for needed, installed in wrong:
        says = f"{needed.name} {installed} is installed, this release was tried with {needed.name}{needed.specifier}"
        yield Finding("versions", needed.name, Severity.WARNING, says, f"pip install '{needed.name}{needed.specifier}'")
    if not wrong:
        yield _fine("versions", "", f"{checked} packages are of versions that this release was tried with")
    yield from _guarded("versions", "pyspark", _pyspark)


def _pyspark() -> Iterator[Finding]:
    """Check PySpark by its own rules, because two packages share one folder."""
    if (module := find_spec("pyspark")) is None or module.origin is None:
        return
    folder = Path(module.origin).parent
    installed = [
        distribution.version for name in spark.PACKAGES for distribution in metadata.Distribution.discover(name=name)
    ]
    for version in installed[:1]:  # whatever else there is brought its own, and says so when it is imported
        remarks = spark.examine(folder, version)
        for says in remarks:
            yield Finding("versions", "pyspark", Severity.WARNING, says)
        if not remarks:
            yield _fine("versions", "pyspark", f"pyspark {version} is taken, and of one release")


def _spark(address: str | None) -> Iterator[Finding]:
    if address is None or not address.startswith("sc://"):
        return
    host, port = listens_at(address)
    try:
        socket.create_connection((host, port), _SPARK_WAIT).close()
    except OSError as error:
        says = f"Spark Connect at {host}:{port} doesn't answer: {error.strerror or error}"
        yield Finding("spark", "", Severity.BROKEN, says)
    else:
        yield _fine("spark", "", f"Spark Connect listens at {host}:{port}")


def _staging(uri: str | None) -> Iterator[Finding]:
    if uri is None:
        yield Finding("staging", "", Severity.BROKEN, "nobody said where staging is: set LOCKSTEP_STAGING")
        return
    staging = Staging(uri)
    free = staging.free_bytes()
    staging.try_out()
    if free is not None and free < _LEAST_FREE:
        says = f"staging has {free / 1e6:,.0f} MB left: an epoch's output may not fit"
        yield Finding("disk", "", Severity.WARNING, says)
    yield _fine("staging", "", "files are made once, whole, and read back")


def _ledger(dsn: str | None) -> Iterator[Finding]:
    if dsn is None:
        yield Finding("ledger", "", Severity.BROKEN, "nobody said where the ledger is: set LOCKSTEP_LEDGER")
        return
    examined = examine_ledger(dsn)
    broken = list(_ledger_faults(examined))
    yield from broken
    if not broken:
        version = f"PostgreSQL {examined.server // 10000}.{examined.server % 10000}"
        yield _fine("ledger", "", f"{version}, migration {examined.migration}")
    if not examined.may_write and not examined.unreadable and examined.migration:
        says = "this role may read the ledger and not move an epoch: see docs/security.md for the rights of tasks"
        yield Finding("rights", "", Severity.WARNING, says)
    if examined.connections * 10 > examined.max_connections * 9:
        says = f"{examined.connections} of the ledger's {examined.max_connections} connections are taken"
        yield Finding("connections", "", Severity.WARNING, says)
    ahead = examined.clock_ahead
    if abs(ahead) > _CLOCKS:
        way = "ahead of" if ahead > timedelta() else "behind"
        says = f"the ledger's clock is {abs(ahead).total_seconds():.0f} s {way} this machine's: let both follow one"
        yield Finding("clock", "", Severity.WARNING, says)
    else:
        yield _fine("clock", "", "the ledger's and this machine's agree")


def _ledger_faults(examined: LedgerCondition) -> Iterator[Finding]:
    broken = Severity.BROKEN
    for setting in examined.settings_off:
        says = f"the ledger's server has {setting} = off: a decision could be lost"
        yield Finding("ledger", "", broken, says, f"ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()")
    if examined.unreadable:
        says = f"this role may not read {', '.join(examined.unreadable)} of the ledger: see docs/security.md"
        yield Finding("rights", "", broken, says)
    elif examined.migration < examined.known:
        lacks = f"is at migration {examined.migration}" if examined.migration else "isn't there yet"
        yield Finding("ledger", "", broken, f"the ledger {lacks}, this release works with {examined.known}", MIGRATE)
    elif examined.migration > examined.known:
        says = f"the ledger is at migration {examined.migration}, this release knows {examined.known}: upgrade Lockstep"
        yield Finding("ledger", "", broken, says)


@contextmanager
def _runtime(surroundings: Surroundings, pipeline: str) -> Iterator[Runtime]:
    """A runtime, if ledger and staging are given."""
    with closing(Ledger(surroundings.ledger or "")) as ledger:
        staging = Staging(surroundings.staging or "")
        yield runtime_for(pipeline, ledger, staging, surroundings.connections, surroundings.define(pipeline))


def _pipelines(surroundings: Surroundings, only: str | None) -> Iterator[Finding]:
    with closing(Report(surroundings.ledger or "")) as report:
        statuses = report.pipelines(limit=1) if only is None else [_known(report, only)]
        for status in statuses:
            yield from _epochs(status)
            with _runtime(surroundings, status.name) as runtime:
                yield from _held_back(runtime)
                yield from _sinks(runtime, forgotten=status.forgotten is not None)
                yield from _guarded("sinks", status.name, partial(_lost_commits, runtime, report))
                yield from _guarded("sinks", status.name, partial(_unshown, runtime))
                yield from _guarded("staging", status.name, partial(_leftovers, runtime))
                yield from _guarded("wal", status.name, partial(_kept, runtime, status))
                yield from _drift(runtime)
        if only is None:
            yield from _orphans(surroundings, report)
            if not statuses:
                yield from _lost(surroundings, report)


def _known(report: Report, pipeline: str) -> PipelineStatus:
    if (status := report.pipeline(pipeline, limit=1)) is None:
        raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
    return status


def _epochs(status: PipelineStatus) -> Iterator[Finding]:
    """Stuck epochs, as in `lockstep status`, and gaps between intervals."""
    for epoch in status.stuck:
        says = f"epoch {epoch.epoch.id} is {epoch.epoch.state}: {epoch.stuck}"
        decided = epoch.epoch.state in DECIDED
        command = suggestions.recover(status.name) if decided else suggestions.history(status.name, epoch.epoch.id)
        if epoch.held and epoch.verdict:
            command = suggestions.release(status.name, epoch.epoch.id, epoch.verdict.manifest_hash)
        yield Finding("epochs", status.name, Severity.BROKEN, says, command)
    for hole in status.holes:
        yield Finding("epochs", status.name, Severity.WARNING, f"no epoch for {hole}: a backfill fills it")
    if not status.stuck:
        counts = ", ".join(f"{count:,} {state}" for state, count in status.counts.items())
        yield _fine("epochs", status.name, f"{counts or 'no epochs'}; nothing is stuck")


def _held_back(runtime: Runtime) -> Iterator[Finding]:
    """Why each source held rows back when the newest epoch was planned."""
    if (last := runtime.ledger.last_epoch(runtime.pipeline)) is not None:
        for source, holder in report_input(last, runtime.open_source).held_back.items():
            says = f"when source {source} was last planned, rows waited for {holder}"
            yield Finding("epochs", runtime.pipeline, Severity.WARNING, says)


def _sinks(runtime: Runtime, *, forgotten: bool) -> Iterator[Finding]:
    """What `begin` would find in current sinks, and what recovery would look for in replaced sinks and those of
    forgotten pipelines, which may be gone or belong to another pipeline."""
    last = runtime.ledger.last_epoch(runtime.pipeline)
    epochs = [*([last] if last else []), *runtime.ledger.unfinished_epochs(runtime.pipeline)]
    in_force = [spec for epoch in epochs for spec in epoch.plan.sinks.values()]
    for spec in known_sinks(runtime):
        about = f"{runtime.pipeline}/{spec['arguments'].get('name', '?')}"
        if not forgotten and (not epochs or spec in in_force):
            yield from _guarded("sinks", about, partial(_sink, runtime, spec, about))
        else:
            cause = "the pipeline was forgotten" if forgotten else "another one has taken its place"
            look = partial(_replaced_sink, runtime, spec, about, cause)
            yield from (
                replace(finding, severity=_at_most_warning(finding)) for finding in _guarded("sinks", about, look)
            )


def _lost_commits(runtime: Runtime, report: Report) -> Iterator[Finding]:
    """Published epochs without markers, in sinks whose commits other writers may replace."""
    status = report.pipeline(runtime.pipeline, limit=_EPOCHS)
    published = [row.epoch for row in status.epochs if row.epoch.state in _SHOWN] if status else []
    for name, spec in published[0].plan.sinks.items() if published else ():
        if not (described := runtime.sink_from(spec)).may_lose_commits:
            continue
        about, command = f"{runtime.pipeline}/{name}", suggestions.go_on_without(runtime.pipeline, name)
        seen_lacking = max(
            (word["epoch"] for word in said_to_lack(runtime.ledger, runtime.pipeline) if word["sink"] == name),
            default=0,
        )
        with runtime.opened(described) as sink:
            yield from (Finding("sinks", about, Severity.WARNING, warning) for warning in sink.warnings())
            for epoch in published:
                if epoch.id <= seen_lacking or epoch.plan.sinks.get(name) != spec or sink.find_marker(epoch.id):
                    continue
                if runtime.ledger.participants(epoch.pipeline, epoch.id)[name].publication != Publication.RESOLVED:
                    says = f"epoch {epoch.id} is published, and its commit is gone: another writer has replaced it"
                    yield Finding("sinks", about, Severity.BROKEN, says, command)


def _unshown(runtime: Runtime) -> Iterator[Finding]:
    """Raises `LedgerConflict` for what a sink shows and this ledger has yet to decide, `SinkUnavailable` if one
    can't be asked."""
    clearance = DeletionGuard(runtime)
    for epoch in runtime.ledger.unfinished_epochs(runtime.pipeline):
        clearance.given_for(epoch)
    clearance.require_all()
    yield from ()


def _at_most_warning(finding: Finding) -> Severity:
    return Severity.FINE if finding.severity is Severity.FINE else Severity.WARNING


def _sink(runtime: Runtime, spec: Json, about: str) -> Iterator[Finding]:
    described = runtime.sink_from(spec)
    last = find_last_shown(runtime.ledger, runtime.pipeline, [described]).get(described.name, [])
    with runtime.opened(described) as sink:
        require_same_target(runtime, sink, last)
        sink.preflight(None)
        require_shown_still(runtime, sink, last, require_known_markers(runtime.ledger, runtime.pipeline, sink))
        waiting = _waiting(runtime, sink)
    yield _fine("sinks", about, f"it takes part, and shows nothing that the ledger doesn't know{waiting}")


def _replaced_sink(runtime: Runtime, spec: Json, about: str, cause: str) -> Iterator[Finding]:
    with runtime.opened(runtime.sink_to_sweep(spec)) as sink:
        waiting = _waiting(runtime, sink)
    yield _fine("sinks", about, f"{cause}; recovery looks after it for seven days{waiting}")


def _waiting(runtime: Runtime, sink: OpenSink) -> str:
    """Number of prepared transactions. Raises `LedgerConflict` for one that the ledger doesn't know."""
    pending = sink.pending()
    for txn in pending:
        require_known_epoch(runtime, txn.epoch, txn.token, f"sink {sink.name} holds {txn.handle}")
    return f", {len(pending)} transactions under way" if pending else ""


def _leftovers(runtime: Runtime) -> Iterator[Finding]:
    """Unused WAL folders, and unknown files in staging."""
    rubbish = sum(1 for _ in find_rubbish(runtime))
    if rubbish:
        says = f"{rubbish} folders of dead attempts take up room in staging"
        yield Finding("staging", runtime.pipeline, Severity.WARNING, says, suggestions.recover(runtime.pipeline))
    deployment = runtime.ledger.deployment()
    for file in runtime.staging.unknown_files(deployment, runtime.pipeline, exclude=kept_epochs(runtime)):
        says = f"{file} isn't Lockstep's: nothing touches it"
        yield Finding("staging", runtime.pipeline, Severity.WARNING, says)


def _kept(runtime: Runtime, status: PipelineStatus) -> Iterator[Finding]:
    """Size of the retained WALs, and overdue ones."""
    if status.kept is None:
        return
    retained, retention = status.kept, runtime.ledger.wal_retention(runtime.pipeline)
    says = f"{retained.epochs:,} WALs, {retained.bytes / 1e6:,.1f} MB, have stayed after cleanup; kept {retention}"
    yield _fine("wal", runtime.pipeline, says)
    if due := runtime.ledger.expiring_wals(runtime.pipeline):
        size = sum(wal.bytes for wal in due) / 1e6
        says = f"{len(due):,} of them, {size:,.1f} MB, are due"
        yield Finding("wal", runtime.pipeline, Severity.WARNING, says, suggestions.recover(runtime.pipeline))


def _drift(runtime: Runtime) -> Iterator[Finding]:
    """An undecided epoch whose definition has changed since it was planned."""
    if runtime.definition is None:
        return
    for epoch in runtime.ledger.unfinished_epochs(runtime.pipeline):
        if epoch.state in UNDECIDED and (changed := find_changed_sinks(runtime, epoch)):
            says = f"epoch {epoch.id} was planned with other sinks (changed: {', '.join(changed)})"
            command = suggestions.replan(epoch.pipeline, epoch.id)
            yield Finding("drift", runtime.pipeline, Severity.BROKEN, says, command)
        elif epoch.state in UNDECIDED and epoch.plan.audits != _audits_of(runtime, epoch):
            says = f"epoch {epoch.id} was planned with other audits, and is asked those"
            command = suggestions.replan(epoch.pipeline, epoch.id)
            yield Finding("drift", runtime.pipeline, Severity.WARNING, says, command)


def _audits_of(runtime: Runtime, epoch: Epoch) -> tuple[Json, ...] | None:
    """The audits that a replan would plan; None if it would be refused."""
    try:
        if epoch.restores is None:
            return runtime.defined.audit_specs()
        return plan_restored(runtime, runtime.ledger.epoch(epoch.pipeline, epoch.restores)).audits
    except (InvalidPipeline, RestateRefused):
        return None


def _orphans(surroundings: Surroundings, report: Report) -> Iterator[Finding]:
    """Folders of pipelines that this ledger has never heard of: a restored ledger, or another one's deployment id."""
    for name in Staging(surroundings.staging or "").pipelines(report.deployment()):
        if report.pipeline(name, limit=1) is None:
            says = f"staging has a folder of pipeline {name}, which the ledger doesn't know: was the ledger restored?"
            yield Finding("staging", name, Severity.WARNING, says)


def _lost(surroundings: Surroundings, report: Report) -> Iterator[Finding]:
    """An empty ledger beside another ledger's staging may be a replacement for it."""
    staging, own = Staging(surroundings.staging or ""), report.deployment()
    for deployment in staging.deployments():
        for name in staging.pipelines(deployment) if deployment != own else ():
            says = (
                f"staging has pipeline {name} of ledger {deployment}, and this one, {own}, is empty: was that one lost?"
            )
            yield Finding("staging", name, Severity.WARNING, says, suggestions.rebuild(name))
