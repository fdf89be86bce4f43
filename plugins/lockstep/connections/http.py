"""Address and login of an HTTP server from a connection. Errors quote neither."""

from __future__ import annotations

import re

import httpx

from lockstep.errors import InvalidPipeline

BEARER = "Authorization"


def parse_url(dsn: str, connection: str) -> httpx.URL:
    """Parse the URL of a connection. `connection`: its name in errors. Raises `InvalidPipeline`."""
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
    """Return headers and Basic login of `url`. A password alone is a token: sent as bearer token in the header
    Authorization, or verbatim in another `key_header`. Raises `InvalidPipeline`."""
    if url.username or not url.password:
        return {}, (url.username, url.password) if url.username else None
    if not re.fullmatch(r"[!-~]+", url.password):
        raise InvalidPipeline(f"{connection}: its token has other characters than printable ASCII")
    token = f"Bearer {url.password}" if key_header == BEARER else url.password
    return {key_header: token}, None
