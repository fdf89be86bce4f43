"""The far end of an HTTP target: where it is, its login, what it answered. Nothing that is told of it has a secret."""

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
from lockstep.sinks.append_only.records import Chunk, Origin, Records
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.sinks.write_ahead import NothingSent

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
                excerpt = self._beginning_of(answer)
                return Answer(answer.status_code, seconds_of(answer.headers.get("Retry-After")), excerpt)
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


#: 4xx that a later try may not get. 409: the request with this key that a killed publisher sent is still being handled
_PASSING = frozenset({408, 409, 425, 429})
_LASTING = frozenset({501, 505})  #: 5xx that every try gets
_LONGEST_PAUSE = 60.0  # seconds


class _TryAgain(Exception):
    """`after`: seconds that the receiver asked for, or None."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


@dataclass(frozen=True, kw_only=True)
class HttpSink(AppendOnlySink):
    """Rows as JSON lines in the bodies of POST requests to `connection`: https://login:password@host/path, or
    https://:token@host/path for a token, which goes as bearer or as it is in `key_header`.

    `records_per_request`; `bytes_per_request`; `requests_at_once`: 1 keeps the order of the WAL. Each request carries
    the header `Idempotency-Key: <key of its first record>-<ordinal of its last>`, and each record its own key. 2xx
    means taken. 408, 409, 425, 429 and most 5xx are tried again, `tries` times within one publication, as the
    receiver's Retry-After or growing pauses say. Any other answer blocks the publication: the decision has been taken,
    so somebody has to look. At most once none is tried again that may have come. `timeout`: seconds for each step of a
    request. Other arguments: see `AppendOnlySink`.
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

    def _deliver(self, receiver: HttpReceiver, records: Records, origin: Origin) -> None:
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

    def _post_all(self, post: _Post, records: Records) -> None:
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
            given_up.set()  # after an error nobody waits for what the others still try


def _post_patiently(receiver: HttpReceiver, target: str, tries: int, chunk: Chunk, given_up: threading.Event) -> None:
    try:
        _retrying(tries, given_up)(_post_once, receiver, target, chunk)
    except _TryAgain as error:
        asks = f", asks to wait {error.after:.0f} s" if error.after else ""
        raise SinkUnavailable(f"{target} {error}{asks}: the epoch will be sent again") from None


def _post_at_most_once(
    receiver: HttpReceiver, target: str, tries: int, reached: threading.Event, chunk: Chunk, given_up: threading.Event
) -> None:
    """Tried again as long as no connection comes about. `reached` is set once a request may have come, whatever one."""
    try:
        _retrying(tries, given_up)(_post_and_mind, receiver, target, reached, chunk)
    except _TryAgain as error:
        raise SinkUnavailable(f"{target} {error}") from None


def _post_and_mind(receiver: HttpReceiver, target: str, reached: threading.Event, chunk: Chunk) -> None:
    records, rest = f"the records from {chunk.key} on", what_follows(Guarantee.AT_MOST_ONCE)
    try:
        answer = receiver.post(chunk.body, _key(chunk))
    except Unanswered as error:
        if not error.connected:
            raise _TryAgain(f"can't be reached: {error}") from None
        reached.set()
        raise SinkUnavailable(f"{target} didn't answer to {records}: {error}; {rest}") from None
    reached.set()
    if not answer.taken:
        raise SinkUnavailable(f"{target} answered {answer.status} to {records}: {answer.told!r}; {rest}")


def _retrying(tries: int, given_up: threading.Event) -> tenacity.Retrying:
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_may_pass),
        stop=tenacity.stop_after_attempt(tries) | tenacity.stop_when_event_set(given_up),
        sleep=tenacity.sleep_using_event(given_up),
        wait=_pause,
        reraise=True,
    )


def _post_once(receiver: HttpReceiver, target: str, chunk: Chunk) -> None:
    try:
        answer = receiver.post(chunk.body, _key(chunk))
    except Unanswered as error:
        raise _TryAgain(f"didn't answer: {error}") from None
    if _passes(answer):
        raise _TryAgain(f"answered {answer.status}", answer.retry_after)
    if not answer.taken:
        raise PublishBlocked(
            f"{target} answered {answer.status} to the records from {chunk.key} on: {answer.told!r}; nothing is "
            "taken for sent"
        )


def _post_blindly(receiver: HttpReceiver, target: str, chunk: Chunk, given_up: threading.Event) -> None:
    """Once, whatever comes back."""
    try:
        receiver.post(chunk.body, _key(chunk))
    except Unanswered as error:
        if not error.sent:
            raise SinkUnavailable(f"{target} can't be reached: {error}") from None


def _key(chunk: Chunk) -> str:
    """Of a request: names all that stands in it, so that one which is cut otherwise at the next try is another one, and
    no receiver takes it for a repeat that it may drop."""
    return f"{chunk.key}-{chunk.last}"


def _first_done(waiting: set[Future[None]]) -> set[Future[None]]:
    """Wait for one; raise what it raised; return the others."""
    done, rest = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return rest


def _passes(answer: Answer) -> bool:
    return answer.status in _PASSING or (answer.status >= 500 and answer.status not in _LASTING)


def _may_pass(error: BaseException) -> bool:
    """Who asks for more than the longest pause gets it from whoever runs the task again."""
    return isinstance(error, _TryAgain) and (error.after is None or error.after <= _LONGEST_PAUSE)


_growing = tenacity.wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE)


def _pause(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    requested = error.after if isinstance(error, _TryAgain) else None
    return float(_growing(state)) if requested is None else requested
