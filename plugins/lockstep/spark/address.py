"""Where a Spark Connect server listens, read from its URL without repeating any of it: it may hold a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from lockstep.errors import NotConfigured

CONNECT_PORT = 15002


def listens_at(url: str) -> tuple[str, int]:
    """Host and port of `sc://…`. Raises `NotConfigured`."""
    with reading_address():
        parts = urlsplit(url)
        return parts.hostname or "localhost", parts.port or CONNECT_PORT


@contextmanager
def reading_address() -> Iterator[None]:
    """Python and pyspark quote what they can't read: a token behind a missing slash, one that ends in `==`. Raises
    `NotConfigured` in place of their `ValueError`."""
    try:
        yield
    except ValueError:
        raise NotConfigured(
            "the address of Spark Connect can't be read (it isn't shown, it may hold a token); expected "
            "sc://host:port/;token=…, with what a value has of = and ; percent-encoded (%3D, %3B)"
        ) from None
