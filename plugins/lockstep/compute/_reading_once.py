"""Whether an epoch's input may be read by the one job that adds it up, with nothing kept, and who has read it.

A transform is called with inputs that nobody has read. What it does then tells whether one job is all that reads them;
if not, it is called again with inputs that were read and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ReadAgain(BaseException):
    """The inputs have to be kept, and the transform called anew. No `Exception`: a transform must not catch it."""


@dataclass
class Readings:
    """The frames that jobs of Lockstep's own have read while the transform ran. `once`: the inputs aren't kept.
    `computed`: whether of some frame only the rows are left."""

    once: bool
    frames: list[DataFrame] = field(default_factory=list)
    computed: bool = False


_readings: ContextVar[Readings | None] = ContextVar("readings", default=None)


@contextmanager
def noting_reads(*, once: bool) -> Iterator[Readings]:
    """While this lasts, one run of a transform, it is noted what reads its inputs; `once`: they aren't kept."""
    readings = Readings(once)
    token = _readings.set(readings)
    try:
        yield readings
    finally:
        _readings.reset(token)


def reads_once() -> bool:
    """Whether the inputs aren't kept, so that whoever reads one should do so once."""
    return (readings := _readings.get()) is not None and readings.once


def note_read(frame: DataFrame) -> None:
    """A job has read all of `frame`."""
    if (readings := _readings.get()) is not None:
        readings.frames.append(frame)


def note_computed(frame: DataFrame) -> None:
    """A job has read all of `frame`, and nobody needs to again."""
    if (readings := _readings.get()) is not None:
        readings.frames.append(frame)
        readings.computed = True


def require_kept(why: str) -> None:
    """Somebody has to read the inputs a second time. Raises `ReadAgain` if they aren't kept."""
    if (readings := _readings.get()) is not None and readings.once:
        raise ReadAgain(why)
