"""Republishes an epoch whose commit another writer of the table has replaced, while the epoch's WAL is still there."""

from __future__ import annotations

import logging

from lockstep.epoch import Epoch
from lockstep.errors import InvalidPipeline, LedgerConflict, TargetChanged, WalCorrupt
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.targets import find_known_losses, said_to_lack
from lockstep.sinks.values import Publication

_log = logging.getLogger(__name__)


class LostCommits(Feature):
    """Looks for the marker once more before cleanup, in sinks where another writer can replace a commit."""

    def cleaning(self, runtime: Runtime, epoch: Epoch) -> None:
        """Raise `LedgerConflict` if the target shows rows of the epoch without its marker, as a compaction in between
        leaves them: publishing again would double them."""
        for name, participant in runtime.ledger.participants(epoch.pipeline, epoch.id).items():
            try:
                described, vote = runtime.sink_of(epoch, name), participant.vote
                if not described.may_lose_commits or vote is None or participant.publication == Publication.RESOLVED:
                    continue
                with runtime.opened(described) as sink:
                    if sink.find_marker(epoch.id) is not None:
                        continue
                    if find_known_losses(said_to_lack(runtime.ledger, epoch.pipeline), sink, [epoch.id]):
                        continue
                    wal = runtime.sealed_outputs(epoch, sink)
                    for output in wal:
                        if rows := sum(batch.num_rows for batch in sink.read(epoch.id, output.output, output.schema)):
                            raise LedgerConflict(
                                f"{epoch}: sink {name} has lost the epoch's commit, which another writer has replaced, "
                                f"and still shows {rows} rows of it: publishing it again would double them. Its WAL is "
                                f"kept. Delete the rows that have the number {epoch.id} in the epoch column from the "
                                "table, then clear `cleanup`"
                            )
                    publication = sink.publish(runtime.sink_epoch(epoch, vote.token), vote, wal)
                    _log.warning("%s: sink %s had lost the commit, and shows it again: %s", epoch, name, publication)
            except (InvalidPipeline, TargetChanged, WalCorrupt) as error:
                _log.warning("%s: sink %s doesn't show what was published there: %s", epoch, name, error)
