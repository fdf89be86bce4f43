"""Values of a manifest's JSON, checked as they are read."""

from __future__ import annotations

import re

from lockstep.epoch import Json

FILE_NAME = re.compile(r"[A-Za-z0-9][^/\\\x00-\x1f]*")


def text(value: Json) -> str:
    """Raises TypeError for anything but a text."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value


def number(value: Json) -> int:
    """Raises TypeError for anything but a whole number from 0 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"expected a count, found {value!r}")
    return value
