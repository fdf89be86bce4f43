"""How much of an epoch its stage task reads by itself, to seal it; of more, Spark's executors read what they wrote."""

from __future__ import annotations

import os

from lockstep.errors import NotConfigured

VARIABLE = "LOCKSTEP_SEAL_BYTES"
_BYTES = 1 << 30


def task_seals() -> int:
    """Bytes of all outputs of an execution. Raises `NotConfigured`."""
    text = os.environ.get(VARIABLE, str(_BYTES))
    if not text.isdecimal():
        raise NotConfigured(f"{VARIABLE}={text!r} must be a whole number of bytes; 0 leaves all reading to executors")
    return int(text)
