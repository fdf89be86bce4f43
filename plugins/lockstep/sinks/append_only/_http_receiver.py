"""The far end of an HTTP target: where it is, its login, what it answered. Nothing that is told of it has a secret."""

from __future__ import annotations

import logging
import time
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from lockstep.connections.http.address import login_of, parse_url

_EXCERPT = 200  # characters of an answer that are told
_LONGEST_ANSWER = 1 << 16  # bytes that are read of it
_TELLING = 8  #: characters: a shorter part of a path is hardly a secret
_log = logging.getLogger("httpx")


class Unanswered(Exception):
    """`connected`: something of the request may have come to the receiver. `sent`: all of it has, and what became of it
    isn't known."""

    def __init__(self, why: str, *, connected: bool, sent: bool) -> None:
        super().__init__(why)
        self.connected, self.sent = connected, sent


@dataclass(frozen=True)
class Answer:
    """`retry_after`: seconds that the receiver asked for, or None. `told`: the start of what it said."""

    status: int
    retry_after: float | None
    told: str

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300


class HttpReceiver:
    """Sends requests to the http(s) URL `dsn`, from several threads at once. Everything in it may be a secret.

    `dsn` with login and password: Basic. With a password alone: a token, as bearer in the header Authorization, as it
    is in any other `key_header`. `timeout`: seconds for each step of a request. Raises `InvalidPipeline`, which quotes
    nothing.
    """

    def __init__(self, dsn: str, connection: str, key_header: str, timeout: float, at_once: int) -> None:
        who = f"connection {connection}"
        url = parse_url(dsn, who)
        headers, auth = login_of(url, who, key_header)
        self._url = url.copy_with(username=None, password=None, fragment=None)
        self._secrets = _secrets_of(self._url, headers, auth)
        self._timeout = timeout
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        self._client = httpx.Client(
            timeout=timeout,
            limits=limits,
            follow_redirects=False,
            headers=headers,
            auth=auth,
            verify=url.scheme == "https",  # to load the authorities' certificates takes 50 ms
        )
        _log.addFilter(self._may_be_logged)

    def close(self) -> None:
        self._client.close()
        _log.removeFilter(self._may_be_logged)

    def post(self, body: bytes, key: str) -> Answer:
        """One request, tried once. Raises `Unanswered`."""
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        try:
            with self._client.stream("POST", self._url, content=body, headers=headers) as answer:
                told = self._beginning_of(answer)
                return Answer(answer.status_code, seconds_of(answer.headers.get("Retry-After")), told)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unanswered(self._why(error), connected=False, sent=False) from None  # the original may quote the URL
        except (httpx.WriteError, httpx.WriteTimeout) as error:
            raise Unanswered(self._why(error), connected=True, sent=False) from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise Unanswered(self._why(error), connected=True, sent=True) from None

    def _beginning_of(self, answer: httpx.Response) -> str:
        """Read to the end, so that the connection can be used again, but not for ever."""
        read, until = bytearray(), time.monotonic() + self._timeout
        for part in answer.iter_raw():
            read += part
            if len(read) > _LONGEST_ANSWER or time.monotonic() > until:
                break
        return self._scrub(read[: 4 * _EXCERPT].decode(errors="replace"))[:_EXCERPT]

    def _why(self, error: Exception) -> str:
        return self._scrub(f"{type(error).__name__}: {error}")

    def _scrub(self, text: str) -> str:
        """`text` without anything of the login, the path or the query."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def _may_be_logged(self, record: logging.LogRecord) -> bool:
        """httpx logs the URL of every request."""
        return not (isinstance(record.args, tuple) and self._url in record.args)


def _secrets_of(url: httpx.URL, headers: dict[str, str], auth: tuple[str, str] | None) -> list[str]:
    """What no message may quote, longest first."""
    tokens = [part for value in headers.values() for part in (value, value.removeprefix("Bearer "))]
    login = [*auth, b64encode(":".join(auth).encode()).decode()] if auth else []
    paths = [url.raw_path.decode(), url.path, url.query.decode()]
    segments = [segment for segment in url.path.split("/") if len(segment) >= _TELLING]
    return sorted({str(url), *paths, *segments, *login, *tokens} - {"", "/"}, key=len, reverse=True)


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
