"""What becomes of malformed records: they fail the epoch by file and line, or go to quarantine, counted."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from pyspark.sql import DataFrame

from lockstep.compute.inputs import Input
from lockstep.errors import BadRecords
from lockstep.sources.records import lines_of, path_of
from lockstep.wal.manifest import SourceCount
from lockstep.wal.sealing import QUARANTINE

_SHOWN = 10
_WIDTH = 120


def settle(found: Input, count: SourceCount, folder: str) -> None:
    """Quarantine the input's malformed records, `count.quarantined` of them, in the execution's `folder`.

    Raises `BadRecords`, with the first ten by file and line, if the source doesn't want them in quarantine.
    """
    if count.quarantined == 0:
        return
    bad = found.records.bad()
    if not found.quarantines:
        raise BadRecords(_message(found.name, count, bad))
    bad.write.mode("error").json(f"{folder}/{QUARANTINE}/{found.name}")


def _message(source: str, count: SourceCount, bad: DataFrame) -> str:
    rows = [(path_of(row["file"]), row["record"]) for row in bad.limit(_SHOWN).collect()]
    shown = "".join(f"\n  {place}: {_short(record)}" for place, record in _placed(rows))
    more = f"\n  and {count.quarantined - len(rows)} more" if count.quarantined > len(rows) else ""
    return (
        f"source {source}: {count.quarantined} of {count.rows} records don't parse; nothing was sealed; correct the "
        f"input, or say on_bad_records='quarantine':{shown}{more}"
    )


def _placed(rows: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for path, group in groupby(sorted(rows), key=itemgetter(0)):
        records = [record for _, record in group]
        for line, record in sorted(zip(lines_of(path, records), records, strict=True), key=lambda pair: pair[0] or 0):
            yield (f"{path}:{line}" if line is not None else path), record


def _short(record: str) -> str:
    text = repr(record)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
