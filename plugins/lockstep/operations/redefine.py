"""redefine: a person says that a definition which shares nothing with the one before goes by its name for good."""

from __future__ import annotations

from lockstep.protocol.identity import REDEFINED, describe_identity, register_pipeline
from lockstep.protocol.runtime import Runtime


def redefine(runtime: Runtime, reason: str) -> None:
    """Take the definition for the pipeline that goes by its name, though it shares no source and no sink with it, or
    though staging has a pipeline of this name of another ledger, and this one has no epoch of it."""
    register_pipeline(runtime)
    runtime.ledger.change_pipeline(runtime.pipeline, REDEFINED, describe_identity(runtime.defined), reason)
