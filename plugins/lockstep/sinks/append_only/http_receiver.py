"""The far end of an HTTP target: where it is, its login, what it answered. Nothing that is told of it has a secret."""

from __future__ import annotations

import logging
import re
import time
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from lockstep.errors import InvalidPipeline

_EXCERPT = 200  # characters of an answer that are told
_LONGEST_ANSWER = 1 << 16  # bytes that are read of it
_TELLING = 8  #: characters: a shorter part of a path is hardly a secret
_log = logging.getLogger("httpx")


class Unsent(Exception):
    """The request didn't get to the receiver whole."""


class Unanswered(Exception):
    """The request was sent; what became of it isn't known."""


@dataclass(frozen=True)
class Answer:
    """`retry_after`: seconds that the receiver asked for, or None. `told`: the start of what it said."""

    status: int
    retry_after: float | None
    told: str

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Address:
    """An http(s) URL with its login taken out of it. Everything in it may be a secret, the path too."""

    url: httpx.URL = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    auth: tuple[str, str] | None = field(repr=False)

    @classmethod
    def of(cls, dsn: str, connection: str, key_header: str) -> Address:
        """`dsn` with login and password: Basic. With a password alone: a token, as bearer in the header Authorization,
        as it is in any other `key_header`. Raises `InvalidPipeline`, which quotes nothing."""
        try:
            url = httpx.URL(dsn)
        except (httpx.InvalidURL, ValueError, TypeError):
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise InvalidPipeline(
                f"connection {connection} is no http(s) URL: give https://login:password@host/path with special "
                "characters percent-encoded, or https://:token@host/path"
            )
        bare = url.copy_with(username=None, password=None, fragment=None)
        if url.username or not url.password:
            return cls(bare, {}, (url.username, url.password) if url.username else None)
        if not re.fullmatch(r"[!-~]+", url.password):
            raise InvalidPipeline(f"connection {connection}: its token has other characters than printable ASCII")
        token = f"Bearer {url.password}" if key_header == "Authorization" else url.password
        return cls(bare, {key_header: token}, None)

    def scrubbed(self, text: str) -> str:
        """`text` without anything of the login, the path or the query."""
        tokens = [part for value in self.headers.values() for part in (value, value.removeprefix("Bearer "))]
        login = [*self.auth, b64encode(":".join(self.auth).encode()).decode()] if self.auth else []
        paths = [self.url.raw_path.decode(), self.url.path, self.url.query.decode()]
        segments = [segment for segment in self.url.path.split("/") if len(segment) >= _TELLING]
        for secret in sorted({str(self.url), *paths, *segments, *login, *tokens} - {"", "/"}, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


class HttpReceiver:
    """Sends requests, from several threads at once. `timeout`: seconds for each step of a request."""

    def __init__(self, address: Address, timeout: float, at_once: int) -> None:
        self._address, self._timeout = address, timeout
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        self._client = httpx.Client(
            timeout=timeout,
            limits=limits,
            follow_redirects=False,
            headers=address.headers,
            auth=address.auth,
            verify=address.url.scheme == "https",  # to load the authorities' certificates takes 50 ms
        )
        _log.addFilter(self._may_be_logged)

    def close(self) -> None:
        self._client.close()
        _log.removeFilter(self._may_be_logged)

    def post(self, body: bytes, key: str) -> Answer:
        """One request, tried once. Raises `Unsent`, `Unanswered`."""
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        try:
            with self._client.stream("POST", self._address.url, content=body, headers=headers) as answer:
                told = self._beginning_of(answer)
                return Answer(answer.status_code, seconds_of(answer.headers.get("Retry-After")), told)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.WriteError, httpx.WriteTimeout) as error:
            raise Unsent(self._why(error)) from None  # the original may quote the URL
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise Unanswered(self._why(error)) from None

    def _beginning_of(self, answer: httpx.Response) -> str:
        """Read to the end, so that the connection can be used again, but not for ever."""
        read, until = bytearray(), time.monotonic() + self._timeout
        for part in answer.iter_raw():
            read += part
            if len(read) > _LONGEST_ANSWER or time.monotonic() > until:
                break
        return self._address.scrubbed(read[: 4 * _EXCERPT].decode(errors="replace"))[:_EXCERPT]

    def _why(self, error: Exception) -> str:
        return self._address.scrubbed(f"{type(error).__name__}: {error}")

    def _may_be_logged(self, record: logging.LogRecord) -> bool:
        """httpx logs the URL of every request."""
        return not (isinstance(record.args, tuple) and self._address.url in record.args)


def seconds_of(retry_after: str | None) -> float | None:
    """Retry-After is a number of seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
