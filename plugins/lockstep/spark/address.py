"""Host and port of a Spark Connect URL. Errors quote nothing of the URL, as it may hold a token."""

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
    """Raise `NotConfigured` in place of the `ValueError` of Python and pyspark, which quotes the unreadable part: a
    token behind a missing slash, a token that ends in `==`."""
    try:
        yield
    except ValueError:
        raise NotConfigured(
            "the address of Spark Connect can't be read (it isn't shown, it may hold a token); expected "
            "sc://host:port/;token=…, with = and ; in values percent-encoded (%3D, %3B)"
        ) from None
