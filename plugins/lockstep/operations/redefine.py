"""redefine: a person says that a definition which shares nothing with the one before goes by its name for good."""

from __future__ import annotations

from lockstep.runtime import Runtime
from lockstep.steps.identity import REDEFINED, describe_identity


def redefine(runtime: Runtime, reason: str) -> None:
    """Take the definition for the pipeline that goes by its name, though it shares no source and no sink with it, or
    though staging has a pipeline of this name of another ledger, and this one has no epoch of it."""
    defined = runtime.defined
    runtime.ledger.ensure_pipeline(
        defined.name, defined.identity, defined.hold, defined.sink_settings(), defined.wal_retention
    )
    runtime.ledger.change_pipeline(runtime.pipeline, REDEFINED, describe_identity(defined), reason)
