"""Sentences about what a step moved, for its log line and for the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.wal.manifest import Manifest

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def describe_rows(rows: Mapping[str, int]) -> str:
    """`flights 842 rows, delays 1 row`."""
    return ", ".join(f"{name} {_many(count, 'row')}" for name, count in rows.items()) or "nothing"


def describe_outputs(manifest: Manifest) -> str:
    """`flights 842 rows in 2 files of 61 kB`, for each output."""
    return ", ".join(
        f"{name} {_many(output.rows, 'row')} in {_many(len(output.files), 'file')} of {_size(output.bytes)}"
        for name, output in manifest.outputs.items()
    )


def may_be_incomplete(epoch: int, sink: str) -> str:
    """Return the sentence for an epoch whose sending was begun and not finished."""
    return f"epoch {epoch} of sink {sink} may be incomplete: it is sent at most once, and its sending was cut off"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _size(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.0f} {_UNITS[-1]}"
