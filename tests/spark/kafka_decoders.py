"""What a pipeline's author may write to decode values: a number of eight bytes, and a name behind it."""

from __future__ import annotations

import struct
from typing import Any


class NoSchema(Exception):
    """As a client's own."""


def decode(data: bytes) -> Any:
    """Raises whatever happens to it."""
    if data == b"away":
        raise ConnectionError("the service of schemas is away")
    if data == b"away for a client":
        raise NoSchema("the service of schemas is away") from ConnectionError("refused")
    if data == b"nothing":
        return None
    name = data[8:].decode()
    number: Any = struct.unpack(">q", data[:8])[0]
    strange = {"text": f"{number}", "large": 2**63, "fraction": 0.5}
    return [number] if name == "list" else {"id": strange.get(name, number), "name": name, "unknown": 7}
