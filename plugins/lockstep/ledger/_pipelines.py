"""What a transaction does to a pipeline as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from psycopg2.extras import Json as Jsonb

import lockstep.ledger._guards as guards
from lockstep.definition.wal_retention import WalRetention
from lockstep.epoch import Json, KeyedBy
from lockstep.errors import IllegalTransition, InvalidPipeline
from lockstep.ledger._connection import Transaction
from lockstep.ledger._rows import require_row


def register(
    tx: Transaction,
    pipeline: str,
    identity: KeyedBy,
    recovery_grace: timedelta | None,
    settings: Mapping[str, Json],
    retention: WalRetention | None = None,
) -> None:
    """Make it known. Raises `InvalidPipeline` as `update`."""
    tx.do("ensure_pipeline", pipeline=pipeline, keyed_by=identity.value)
    update(tx, pipeline, identity, recovery_grace, settings, retention)


def update(
    tx: Transaction,
    pipeline: str,
    identity: KeyedBy,
    recovery_grace: timedelta | None,
    settings: Mapping[str, Json],
    retention: WalRetention | None = None,
) -> None:
    """Raises `InvalidPipeline` if it lives with the other identity, or was forgotten."""
    row = require_row(tx.one("find_pipeline", pipeline=pipeline))
    guards.require_remembered(row)
    if row["keyed_by"] != identity:
        raise InvalidPipeline(
            f"pipeline {pipeline} has {row['keyed_by']} epochs in the ledger, its sources now make "
            f"{identity} epochs; give the pipeline another name"
        )
    if recovery_grace is not None:
        tx.do("set_recovery_grace", pipeline=pipeline, recovery_grace=recovery_grace)
    if retention is not None:
        tx.do("set_retention", pipeline=pipeline, time=retention.time, epochs=retention.epochs)
    for sink, spec in settings.items():
        tx.do("save_deployed_settings", pipeline=pipeline, sink=sink, spec=Jsonb(spec))


def is_unstarted(tx: Transaction, pipeline: str, savepoint_hash: str) -> bool:
    """False if it began with this very savepoint. Raises `IllegalTransition` if it has epochs, or another one."""
    last = guards.lock_pipeline(tx, pipeline)["last_epoch"]
    found = tx.one("find_savepoint", pipeline=pipeline)
    if found and found["hash"] == savepoint_hash:
        return False
    if found or last:
        begun = "began with another savepoint" if found else f"has {last} epochs"
        raise IllegalTransition(f"pipeline {pipeline} {begun}: only a new one can begin with a savepoint")
    return True
