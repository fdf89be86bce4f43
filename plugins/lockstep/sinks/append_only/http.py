"""`HttpSink`: records by HTTP POST, several requests at once, with back-off. No message quotes a secret."""

from __future__ import annotations

import logging
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import ClassVar

import httpx
import tenacity

from lockstep.connections.http import login_of, parse_url
from lockstep.errors import InvalidPipeline, PublishBlocked, SinkUnavailable
from lockstep.sinks.append_only.base import MAX_RECORD_BYTES, AppendOnlySink, OpenRecordSink, what_follows
from lockstep.sinks.append_only.records import Chunk, JsonRecords, Origin
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.sinks.write_ahead import NothingSent

_EXCERPT = 200  # characters of an answer in messages
_MAX_ANSWER = 1 << 16  # bytes of an answer that are read
_MIN_SECRET = 8  #: characters: a shorter segment of a path is hardly a secret
_log = logging.getLogger("httpx")


class Unanswered(Exception):
    """No answer to a request. `connected`: a part of it may have reached the receiver. `sent`: all of it has, with an
    unknown outcome."""

    def __init__(self, why: str, *, connected: bool, sent: bool) -> None:
        super().__init__(why)
        self.connected, self.sent = connected, sent


@dataclass(frozen=True)
class HttpAnswer:
    """`retry_after`: seconds the receiver asked to wait, or None. `excerpt`: the beginning of the body."""

    status: int
    retry_after: float | None
    excerpt: str

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300


class HttpReceiver:
    """Sends requests to the http(s) URL `dsn`, from several threads. Everything in the URL may be secret.

    `dsn` with login and password: Basic authentication. With a password alone: a token, sent as bearer token in the
    header Authorization, or verbatim in another `key_header`. `timeout`: seconds for each step of a request. Raises
    `InvalidPipeline` without quoting the URL.
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
            verify=url.scheme == "https",  # loading the CA certificates takes 50 ms
        )
        _log.addFilter(self._may_be_logged)

    def close(self) -> None:
        self._client.close()
        _log.removeFilter(self._may_be_logged)

    def post(self, body: bytes, key: str) -> HttpAnswer:
        """Send one request once. Raises `Unanswered`."""
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        try:
            with self._client.stream("POST", self._url, content=body, headers=headers) as answer:
                excerpt = self._read_excerpt(answer)
                return HttpAnswer(answer.status_code, seconds_of(answer.headers.get("Retry-After")), excerpt)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unanswered(self._why(error), connected=False, sent=False) from None  # the original may quote the URL
        except (httpx.WriteError, httpx.WriteTimeout) as error:
            raise Unanswered(self._why(error), connected=True, sent=False) from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise Unanswered(self._why(error), connected=True, sent=True) from None

    def _read_excerpt(self, answer: httpx.Response) -> str:
        """Read the answer to its end, so that the connection can be reused, but with a limit. Return its beginning."""
        read, until = bytearray(), time.monotonic() + self._timeout
        for part in answer.iter_raw():
            read += part
            if len(read) > _MAX_ANSWER or time.monotonic() > until:
                break
        return self._scrub(read[: 4 * _EXCERPT].decode(errors="replace"))[:_EXCERPT]

    def _why(self, error: Exception) -> str:
        return self._scrub(f"{type(error).__name__}: {error}")

    def _scrub(self, text: str) -> str:
        """Return `text` with login, path and query masked."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def _may_be_logged(self, record: logging.LogRecord) -> bool:
        """Return False for httpx's log lines with the URL of a request."""
        return not (isinstance(record.args, tuple) and self._url in record.args)


def _secrets_of(url: httpx.URL, headers: dict[str, str], auth: tuple[str, str] | None) -> list[str]:
    """Return the texts that no message may quote, longest first."""
    tokens = [part for value in headers.values() for part in (value, value.removeprefix("Bearer "))]
    login = [*auth, b64encode(":".join(auth).encode()).decode()] if auth else []
    paths = [url.raw_path.decode(), url.path, url.query.decode()]
    segments = [segment for segment in url.path.split("/") if len(segment) >= _MIN_SECRET]
    return sorted({str(url), *paths, *segments, *login, *tokens} - {"", "/"}, key=len, reverse=True)


def seconds_of(retry_after: str | None) -> float | None:
    """Parse a Retry-After header, a number of seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


#: 4xx that a retry may not get. 409: the request with this key, from a killed publisher, is still being handled
_TEMPORARY = frozenset({408, 409, 425, 429})
_PERMANENT = frozenset({501, 505})  #: 5xx that every retry gets
_MAX_PAUSE = 60.0  # seconds


class _TryAgain(Exception):
    """`after`: seconds the receiver asked to wait, or None."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


@dataclass(frozen=True, kw_only=True)
class HttpSink(AppendOnlySink):
    """Sends rows as JSON lines in the bodies of POST requests to `connection`: https://login:password@host/path, or
    https://:token@host/path for a token, sent as bearer token or verbatim in `key_header`.

    `records_per_request`; `bytes_per_request`; `requests_at_once`: 1 keeps the order of the WAL. Each request carries
    the header `Idempotency-Key: <key of its first record>-<ordinal of its last>`, and each record its own key. 2xx
    means taken. 408, 409, 425, 429 and most 5xx are retried, `tries` times within one publication, after Retry-After or
    growing pauses. Any other answer blocks the publication, since the epoch is decided, until an operator acts. With
    at most once, a request that may have arrived is not retried. `timeout`: seconds for each step of a request. Other
    arguments: see `AppendOnlySink`.
    """

    connection: str
    key_header: str = "Authorization"
    records_per_request: int = 500
    bytes_per_request: int = MAX_RECORD_BYTES
    requests_at_once: int = 4
    tries: int = 6
    timeout: float = 30.0

    operational: ClassVar[frozenset[str]] = frozenset(
        {"records_per_request", "bytes_per_request", "requests_at_once", "tries", "timeout"}
    ).union(AppendOnlySink.operational)

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = (self.records_per_request, self.bytes_per_request, self.requests_at_once, self.tries)
        if min(counts) < 1 or not self.timeout > 0:
            raise InvalidPipeline(
                f"sink {self.name}: records_per_request, bytes_per_request, requests_at_once and tries have to be at "
                "least 1, timeout above 0"
            )
        if not re.fullmatch(r"[A-Za-z0-9-]+", self.key_header):
            raise InvalidPipeline(f"sink {self.name}: key_header {self.key_header!r} is no name of a header")

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"receiver of connection {self.connection}"})

    def open(self, context: SinkContext) -> OpenRecordSink:
        dsn = context.dsn(self.connection, self.name)
        receiver = HttpReceiver(dsn, self.connection, self.key_header, self.timeout, self.requests_at_once)
        try:
            return OpenRecordSink(self, context, partial(self._deliver, receiver), receiver.close)
        except BaseException:
            receiver.close()
            raise

    def _deliver(self, receiver: HttpReceiver, records: JsonRecords, origin: Origin) -> None:
        target = f"sink {self.name}: the receiver behind connection {self.connection}"
        post: _Post = partial(_post_patiently, receiver, target, self.tries)
        if self.guarantee is Guarantee.NONE:
            post = partial(_post_blindly, receiver, target)
        if self.guarantee is not Guarantee.AT_MOST_ONCE:
            self._post_all(post, records)
            return
        reached = threading.Event()
        try:
            self._post_all(partial(_post_at_most_once, receiver, target, self.tries, reached), records)
        except SinkUnavailable as error:
            if reached.is_set():
                raise
            raise NothingSent(str(error)) from None

    def _post_all(self, post: _Post, records: JsonRecords) -> None:
        requests = records.chunks(self.records_per_request, self.bytes_per_request)
        if self.requests_at_once > 1:
            _post_at_once(post, requests, self.requests_at_once, f"lockstep-{self.name}")
            return
        for chunk in requests:
            post(chunk, threading.Event())


_Post = Callable[[Chunk, threading.Event], None]


def _post_at_once(post: _Post, requests: Iterator[Chunk], at_once: int, thread_name: str) -> None:
    given_up = threading.Event()
    with ThreadPoolExecutor(at_once, thread_name_prefix=thread_name) as pool:
        try:
            waiting: set[Future[None]] = set()
            for chunk in requests:
                if len(waiting) == at_once:
                    waiting = _first_done(waiting)
                waiting.add(pool.submit(post, chunk, given_up))
            while waiting:
                waiting = _first_done(waiting)
        finally:
            given_up.set()  # after an error the other requests end their retries


def _post_patiently(receiver: HttpReceiver, target: str, tries: int, chunk: Chunk, given_up: threading.Event) -> None:
    """Post until the receiver takes the chunk. Raises `PublishBlocked` for an answer that a retry can't change."""

    def attempt() -> None:
        try:
            answer = receiver.post(chunk.body, _key(chunk))
        except Unanswered as error:
            raise _TryAgain(f"didn't answer: {error}") from None
        if answer.status in _TEMPORARY or (answer.status >= 500 and answer.status not in _PERMANENT):
            raise _TryAgain(f"answered {answer.status}", answer.retry_after)
        if not answer.taken:
            raise PublishBlocked(
                f"{target} answered {answer.status} to the records from {chunk.key} on: {answer.excerpt!r}; nothing is "
                "taken for sent"
            )

    try:
        _retrying(tries, given_up)(attempt)
    except _TryAgain as error:
        asks = f", asks to wait {error.after:.0f} s" if error.after else ""
        raise SinkUnavailable(f"{target} {error}{asks}: the epoch will be sent again") from None


def _post_at_most_once(
    receiver: HttpReceiver, target: str, tries: int, reached: threading.Event, chunk: Chunk, given_up: threading.Event
) -> None:
    """Post, and retry only while no connection is established. Sets `reached` once any request may have arrived."""
    records, rest = f"the records from {chunk.key} on", what_follows(Guarantee.AT_MOST_ONCE)

    def attempt() -> None:
        try:
            answer = receiver.post(chunk.body, _key(chunk))
        except Unanswered as error:
            if not error.connected:
                raise _TryAgain(f"can't be reached: {error}") from None
            reached.set()
            raise SinkUnavailable(f"{target} didn't answer to {records}: {error}; {rest}") from None
        reached.set()
        if not answer.taken:
            raise SinkUnavailable(f"{target} answered {answer.status} to {records}: {answer.excerpt!r}; {rest}")

    try:
        _retrying(tries, given_up)(attempt)
    except _TryAgain as error:
        raise SinkUnavailable(f"{target} {error}") from None


def _retrying(tries: int, given_up: threading.Event) -> tenacity.Retrying:
    """Retry on `_TryAgain`, unless the receiver asks for a longer pause than the task should wait: Airflow retries."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, _TryAgain) and (error.after is None or error.after <= _MAX_PAUSE)
        ),
        stop=tenacity.stop_after_attempt(tries) | tenacity.stop_when_event_set(given_up),
        sleep=tenacity.sleep_using_event(given_up),
        wait=_pause,
        reraise=True,
    )


def _post_blindly(receiver: HttpReceiver, target: str, chunk: Chunk, given_up: threading.Event) -> None:
    """Post once and ignore the answer."""
    try:
        receiver.post(chunk.body, _key(chunk))
    except Unanswered as error:
        if not error.sent:
            raise SinkUnavailable(f"{target} can't be reached: {error}") from None


def _key(chunk: Chunk) -> str:
    """Return the key of a request. It names the records it holds: a request with other records has another key, so no
    receiver drops it as a repeat."""
    return f"{chunk.key}-{chunk.last}"


def _first_done(waiting: set[Future[None]]) -> set[Future[None]]:
    """Wait until a future is done; raise its error; return the unfinished ones."""
    done, rest = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return rest


_growing = tenacity.wait_random_exponential(multiplier=0.2, max=_MAX_PAUSE)


def _pause(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    requested = error.after if isinstance(error, _TryAgain) else None
    return float(_growing(state)) if requested is None else requested
