"""`SinkUnderTest`, the roles' steps with a sink, and assertions about its target."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa

from lockstep.epoch import Vote
from lockstep.errors import PreflightRefused, Retryable
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, Guarantee, Publication, Replaced, SinkContext, SinkEpoch, Txn
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, counted, digest, staged_below_table

DEPLOYMENT = "11111111-2222-4333-8444-555555555555"
PATIENCE = 60  # seconds for whatever is waited for
PAUSE = 0.01  # seconds between two looks


class SinkUnderTest(ABC):
    """One sink on a fresh target. Subclass it to run the behaviour suite against your sink.

    The suite calls these methods in one process, and opens the sink in forked ones, too: keep no open connection that
    `sink` and `visible` share across a fork. The classic mistake is to implement `visible` with the sink's own `read`,
    which hides what both overlook.
    """

    #: the guarantee that the suite tests; the sink has to declare the same one
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    #: True if `prepare` leaves a transaction that `pending` must list; False for a write-ahead sink
    votes_with_data: bool = True
    #: True if the sink can `read` published rows; otherwise `read` must raise `PreflightRefused`
    reads_back: bool = True
    #: True if an epoch can replace a published one; otherwise `require_replaceable` must raise `PreflightRefused`
    replaceable: bool = False

    @abstractmethod
    def sink(self, *, shared: bool = False) -> Sink:
        """Return a new description of the sink, equal each time. It takes the output `OUTPUT` with the schema `SCHEMA`.

        `shared`: other pipelines write to the same target.
        """

    @abstractmethod
    def elsewhere(self) -> tuple[Sink, SinkContext]:
        """Return the same sink and a context that leads to another target, on which preflight has run."""

    @abstractmethod
    def visible(self) -> pa.Table:
        """Return the rows that a reader of the target sees, read without the sink."""

    @abstractmethod
    def unsettled(self) -> list[str]:
        """Return names of everything in the target that is neither visible nor the sink's permanent record (markers,
        ids), foreign things included."""

    @abstractmethod
    def lose(self, handle: str) -> None:
        """Remove the pending transaction `handle` behind the sink's back, as an administrator might."""

    def lose_power(self) -> bool:
        """Stop the target without warning, so that what isn't durable is lost, and start it again. Return False if this
        target can't do that."""
        return False

    def connections(self) -> dict[str, str]:
        return {}

    def staged(self, sink_epoch: SinkEpoch, wal: Sequence[SealedRows]) -> Sequence[Batches]:
        """Return the rows as the sink gets them: for an adopting sink, files below its table."""
        sink = self.sink()
        if not sink.adopts:
            return wal
        context = self.context()
        home = sink.home(context)
        return [staged_below_table(batches, home, sink_epoch, context.deployment, context.pipeline) for batches in wal]

    def context(self, *, pipeline: str = "pipe", deployment: str = DEPLOYMENT) -> SinkContext:
        return SinkContext(deployment, pipeline, self.connections())


def epoch(id: int = 1, *, token: int = 10, manifest: str = "a", replaced: Sequence[SinkEpoch] = ()) -> SinkEpoch:
    """Return an epoch. Another `manifest` text gives another manifest hash. `replaced`: the epochs that it replaces."""
    result = SinkEpoch(id, token, hashlib.sha256(manifest.encode()).hexdigest(), datetime(2013, 1, 2, tzinfo=UTC))
    if not replaced:
        return result
    replaced_epochs = tuple(Replaced(old.id, old.manifest_hash) for old in replaced)
    return dataclasses.replace(result, replaced=replaced_epochs, generation=replaced[0].generation + 1)


@contextmanager
def opened(target: SinkUnderTest, context: SinkContext | None = None, *, shared: bool = False) -> Iterator[OpenSink]:
    with target.sink(shared=shared).opened(context or target.context()) as sink:
        yield sink


def prepare(
    target: SinkUnderTest,
    sink_epoch: SinkEpoch,
    wal: Sequence[SealedRows],
    context: SinkContext | None = None,
    *,
    shared: bool = False,
) -> Vote:
    """Do with the sink what the roles begin and prepare do."""
    with opened(target, context, shared=shared) as sink:
        sink.preflight(None)
        sink.preflight({batches.output: batches.schema for batches in wal})
        return sink.prepare(sink_epoch, target.staged(sink_epoch, wal))


def publish(target: SinkUnderTest, sink_epoch: SinkEpoch, vote: Vote, wal: Sequence[SealedRows]) -> Publication:
    """Publish with the sink rebuilt from its spec, as any process can; retry while errors are `Retryable`."""
    described = target.sink()
    spec, settings = json.loads(json.dumps([described.spec(), described.settings()]))
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with Sink.from_spec(spec, settings).opened(target.context()) as sink:
                return sink.publish(sink_epoch, vote, target.staged(sink_epoch, wal))
        except Retryable:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def sweep(target: SinkUnderTest, decided: Vote | None = None) -> list[Txn]:
    """Do what recovery does: abort every pending transaction that was not decided, and return those."""
    with opened(target) as sink:
        swept = [txn for txn in sink.pending() if decided is None or txn.token != decided.token]
        for txn in swept:
            sink.abort(txn)
        return swept


def pending(target: SinkUnderTest, context: SinkContext | None = None) -> list[Txn]:
    with opened(target, context) as sink:
        return sink.pending()


def expect_rows(
    target: SinkUnderTest, *wals: Sequence[SealedRows], cut_off: Iterable[Sequence[SealedRows]] = ()
) -> None:
    """Fail unless the target shows these rows as often as its guarantee allows. `cut_off`: rows of epochs that were cut
    off, any of which may be missing."""
    rows = _together(wals)
    match target.guarantee:
        case Guarantee.AT_MOST_ONCE:
            _expect_at_most(target.visible(), rows, _together(cut_off))
        case Guarantee.EXACTLY_ONCE:
            actual, expected = digest(target.visible()), digest(rows)
            assert actual == expected, (
                f"the target shows {actual[0]} rows of digest {actual[1]}, expected were {expected}"
            )
        case Guarantee.AT_LEAST_ONCE:
            _expect_at_least(target.visible(), rows)
        case Guarantee.NONE:
            _expect_at_least(_arrived(target, rows.num_rows), rows)


def shows(target: SinkUnderTest, *wals: Sequence[SealedRows]) -> bool:
    """Return True if the target shows exactly these rows now."""
    return digest(target.visible()) == digest(_together(wals))


def _together(wals: Iterable[Sequence[SealedRows]]) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *(batches.table for wal in wals for batches in wal)])


def _expect_at_least(visible: pa.Table, rows: pa.Table) -> None:
    actual, expected = counted(visible), counted(rows)
    lost, foreign = (expected - actual).total(), len(actual.keys() - expected.keys())
    assert not lost and not foreign, f"the target lacks {lost} rows and shows {foreign} that were never sent"


def _expect_at_most(visible: pa.Table, rows: pa.Table, cut_off: pa.Table) -> None:
    actual, required, optional = counted(visible), counted(rows), counted(cut_off)
    lost, excess = (required - actual).total(), (actual - (required + optional)).total()
    assert not lost, f"the target lacks {lost} rows of epochs that are not reported as cut off"
    assert not excess, f"the target shows {excess} rows that were never sent, or were sent twice"


def was_cut_off(target: SinkUnderTest, sink_epoch: SinkEpoch) -> bool:
    """Return True if the sink reports that the epoch may be incomplete."""
    if target.guarantee is not Guarantee.AT_MOST_ONCE:
        return False
    with opened(target) as sink:
        marker = sink.find_marker(sink_epoch.id)
    return marker is not None and not marker.whole


def _arrived(target: SinkUnderTest, rows: int) -> pa.Table:
    """Wait until the target shows `rows` rows; return what it shows."""
    deadline = time.monotonic() + PATIENCE
    while (visible := target.visible()).num_rows < rows and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return visible


def expect_settled(target: SinkUnderTest) -> None:
    """Fail if the target holds anything that is neither visible nor the sink's permanent record."""
    leftovers = target.unsettled()
    assert not leftovers, f"left behind: {leftovers}"


def expect_proof(target: SinkUnderTest, sink_epoch: SinkEpoch, wal: Sequence[SealedRows]) -> None:
    """Fail unless the marker and `read` agree with the epoch and its rows, as far as the sink supports them."""
    if target.guarantee is Guarantee.NONE:
        return
    with opened(target) as sink:
        marker = sink.find_marker(sink_epoch.id)
        assert marker is not None and marker.manifest_hash == sink_epoch.manifest_hash, f"the marker is {marker}"
        if target.reads_back:
            read_rows = pa.Table.from_batches(list(sink.read(sink_epoch.id, OUTPUT, SCHEMA)), SCHEMA)
            if not was_cut_off(target, sink_epoch):
                _expect_read(target, read_rows, pa.concat_tables(batches.table for batches in wal))
        else:
            with refused(PreflightRefused):
                list(sink.read(sink_epoch.id, OUTPUT, SCHEMA))


def _expect_read(target: SinkUnderTest, read_rows: pa.Table, rows: pa.Table) -> None:
    if target.guarantee in (Guarantee.EXACTLY_ONCE, Guarantee.AT_MOST_ONCE):
        assert digest(read_rows) == digest(rows), "read() gives other rows"
    else:
        _expect_at_least(read_rows, rows)


def expect_replaced(target: SinkUnderTest, sink_epoch: SinkEpoch) -> None:
    """Fail unless the replaced epoch still has its marker, and none of its rows."""
    with opened(target) as sink:
        marker = sink.find_marker(sink_epoch.id)
        assert marker is not None and marker.manifest_hash == sink_epoch.manifest_hash, f"the marker is {marker}"
        remaining = sum(batch.num_rows for batch in sink.read(sink_epoch.id, OUTPUT, SCHEMA))
        assert not remaining, f"read() gives {remaining} rows of an epoch that was replaced"


@contextmanager
def refused(*errors: type[Exception]) -> Iterator[None]:
    """Fail unless the block raises one of `errors`."""
    try:
        yield
    except errors:
        return
    raise AssertionError(f"nothing was refused, expected was one of {[error.__name__ for error in errors]}")
