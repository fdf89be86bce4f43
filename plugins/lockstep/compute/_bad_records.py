"""What becomes of malformed records: they fail the epoch by file and line, or go to quarantine, counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pyspark.sql import DataFrame

from lockstep.compute._inputs import Input
from lockstep.compute._reasons import reasons_of
from lockstep.errors import BadRecords
from lockstep.sources.records import SourceRecords, lines_of, path_of
from lockstep.wal.manifest import SourceCount
from lockstep.wal.sealing import QUARANTINE

_SHOWN = 10


def settle(found: Input, count: SourceCount, folder: str) -> None:
    """Quarantine the input's malformed records, `count.quarantined` of them, in the execution's `folder`.

    Raises `BadRecords`, with the first ten by file, line, column and reason, if the source wants none in quarantine;
    and what the source raises if it can't be said yet that they are malformed.
    """
    if count.quarantined == 0:
        return
    records = found.marked()
    if records.confirm_bad is not None:
        records.confirm_bad(records)
    bad = records.bad()
    if not found.quarantines:
        raise BadRecords(_message(found.name, count, records, bad))
    bad.write.mode("error").json(f"{folder}/{QUARANTINE}/{found.name}")


def _message(source: str, count: SourceCount, records: SourceRecords, bad: DataFrame) -> str:
    found = [row.asDict() for row in bad.limit(_SHOWN).collect()]
    rows = [(path_of(row["file"]), row["record"]) for row in found]
    reading = records.reading
    why = reasons_of(bad.sparkSession, reading, [record for _, record in rows]) if reading else [""] * len(rows)
    why = [row.get("why") or reason for row, reason in zip(found, why, strict=False)]
    shown = "".join(f"\n  {place}{reason}" for place, reason in _by_place(rows, why))
    more = f"\n  and {count.quarantined - len(rows)} more" if count.quarantined > len(rows) else ""
    return (
        f"source {source}: {count.quarantined} of {count.rows} records don't parse; nothing was sealed; correct the "
        f"input, or say on_bad_records='quarantine', which keeps them:{shown}{more}"
    )


def _by_place(rows: Sequence[tuple[str, str]], why: Sequence[str]) -> Iterable[tuple[str, str]]:
    reasons = [f": {reason}" if reason else "" for reason in why]
    for path, group in groupby(sorted(zip(rows, reasons, strict=True)), key=lambda found: found[0][0]):
        found = list(group)
        lines = lines_of(path, [record for (_, record), _ in found])
        told = zip(lines, (reason for _, reason in found), strict=True)
        for line, reason in sorted(told, key=lambda one: one[0] or 0):
            yield (f"{path}:{line}" if line is not None else path), reason
