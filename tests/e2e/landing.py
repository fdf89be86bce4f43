"""What the pipelines of the end-to-end tests read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Row = tuple[int, str, float]


def write_rows(file: Path, rows: Iterable[Row]) -> None:
    """An input, whole from the first look on."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text("id,day,amount\n" + "".join(f"{id},{day},{amount}\n" for id, day, amount in rows))
    unfinished.rename(file)
