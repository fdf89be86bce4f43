"""Where an HTTP server is, and the login there, as connections say it. Errors quote nothing of either."""

from __future__ import annotations

import re

import httpx

from lockstep.errors import InvalidPipeline

BEARER = "Authorization"


def parse_url(dsn: str, connection: str) -> httpx.URL:
    """`connection`: what it is called in errors. Raises `InvalidPipeline`."""
    try:
        url = httpx.URL(dsn)
    except (httpx.InvalidURL, ValueError, TypeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidPipeline(
            f"{connection} is no http(s) URL: give https://login:password@host/path with special characters "
            "percent-encoded, or https://:token@host/path"
        )
    return url


def login_of(
    url: httpx.URL, connection: str, key_header: str = BEARER
) -> tuple[dict[str, str], tuple[str, str] | None]:
    """The headers and the Basic login that `url` stands for. A password alone is a token: as bearer in the header
    Authorization, as it is in any other `key_header`. Raises `InvalidPipeline`."""
    if url.username or not url.password:
        return {}, (url.username, url.password) if url.username else None
    if not re.fullmatch(r"[!-~]+", url.password):
        raise InvalidPipeline(f"{connection}: its token has other characters than printable ASCII")
    token = f"Bearer {url.password}" if key_header == BEARER else url.password
    return {key_header: token}, None
