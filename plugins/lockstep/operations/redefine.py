"""redefine: a person says that a definition which shares nothing with the one before goes by its name for good."""

from __future__ import annotations

from lockstep.runtime import Runtime
from lockstep.steps.identity import REDEFINED, describe_identity


def redefine(runtime: Runtime, reason: str) -> None:
    """Take the definition for the pipeline that goes by its name, though it shares no source and no sink with it."""
    runtime.ledger.change_pipeline(runtime.pipeline, REDEFINED, describe_identity(runtime.defined), reason)
