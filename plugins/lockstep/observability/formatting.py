"""Times as short text."""

from __future__ import annotations

from datetime import time, timedelta

from lockstep.epoch import Interval


def short_interval(interval: Interval) -> str:
    """An interval in UTC: 2026-01-31, or with clock times where they aren't midnight."""
    start, end = interval.start, interval.end
    days = start.time() == end.time() == time.min
    if days and end - start == timedelta(days=1):
        return f"{start.date()}"
    if days:
        return f"{start.date()} → {end.date()}"
    if start.second or end.second:
        return f"{start.date()} {start:%H:%M:%S} → {end.date()} {end:%H:%M:%S}"
    return (
        f"{start.date()} {start:%H:%M} → {end:%H:%M}"
        if start.date() == end.date()
        else f"{start.date()} {start:%H:%M} → {end.date()} {end:%H:%M}"
    )


def short_age(age: timedelta) -> str:
    """A duration in its largest unit: 3 d, 2 h, 5 min, 40 s."""
    seconds = int(age.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
