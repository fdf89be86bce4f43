"""Records by HTTP POST, some at once, with back-off; each request can be told from every other one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import httpx
import tenacity

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, PublishBlocked, SinkUnavailable
from lockstep.sinks.append_only import AppendOnlySink, chunks, reason_of
from lockstep.sinks.append_records import Record
from lockstep.sinks.base import SinkContext, SinkEpoch

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # a later try may be taken
_LONGEST_PAUSE = 60.0  # seconds


class _TryAgain(Exception):
    """`after`: seconds that the server asked for, or None."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class HttpSink(AppendOnlySink):
    """Rows as JSON lines in the bodies of POST requests to `connection`, an http(s) URL; its login goes as Basic.

    `records_per_request`; `requests_at_once`: 1 keeps the order of the WAL. Each request carries the header
    `Idempotency-Key: <pipeline>/<output>/<epoch>/<ordinal of its first record>`, and each record its own key. 2xx means
    taken. 408, 425, 429 and 5xx are tried again, `tries` times within one publication, as the server's Retry-After or
    growing pauses say. Any other answer blocks the publication: the decision has been taken, so somebody has to look.
    """

    def __init__(
        self,
        name: str,
        *,
        output: str,
        connection: str,
        committer: str,
        max_record_bytes: int = 1 << 20,
        records_per_request: int = 500,
        requests_at_once: int = 4,
        tries: int = 6,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(name, output=output, committer=committer, max_record_bytes=max_record_bytes)
        if min(records_per_request, requests_at_once, tries) < 1 or not timeout > 0:
            raise InvalidPipeline(
                f"sink {name}: records_per_request, requests_at_once and tries have to be at least 1, timeout above 0"
            )
        self._connection, self._timeout, self._tries = connection, timeout, tries
        self._per_request, self._at_once = records_per_request, requests_at_once

    def arguments(self) -> dict[str, Json]:
        return {
            **super().arguments(),
            "connection": self._connection,
            "records_per_request": self._per_request,
            "requests_at_once": self._at_once,
            "tries": self._tries,
            "timeout": self._timeout,
        }

    def open(self, context: SinkContext) -> None:
        super().open(context)
        url = httpx.URL(context.dsn(self._connection, self.name))
        if url.scheme not in ("http", "https") or not url.host:
            raise InvalidPipeline(f"sink {self.name}: connection {self._connection} is no http(s) URL")
        limits = httpx.Limits(max_connections=self._at_once, max_keepalive_connections=self._at_once)
        self._url = url
        self._client = httpx.Client(timeout=self._timeout, limits=limits, follow_redirects=False)

    def close(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()
        super().close()

    def deliver(self, records: Iterator[Record], epoch: SinkEpoch) -> None:
        with ThreadPoolExecutor(self._at_once, thread_name_prefix=f"lockstep-{self.name}") as pool:
            waiting: set[Future[None]] = set()
            for chunk in chunks(records, self._per_request):
                if len(waiting) == self._at_once:
                    waiting = _first_done(waiting)
                waiting.add(pool.submit(self._post, chunk))
            while waiting:
                waiting = _first_done(waiting)

    def _post(self, chunk: list[Record]) -> None:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_TryAgain),
            stop=tenacity.stop_after_attempt(self._tries),
            wait=_pause,
            reraise=True,
        )
        try:
            retrying(self._post_once, chunk)
        except _TryAgain as error:
            raise SinkUnavailable(f"sink {self.name}: connection {self._connection}: {error}") from error

    def _post_once(self, chunk: list[Record]) -> None:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": chunk[0].key}
        body = b"".join(record.line + b"\n" for record in chunk)
        try:
            answer = self._client.post(self._url, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise _TryAgain(reason_of(error)) from None  # the original may quote the URL
        if answer.status_code in _PASSING:
            raise _TryAgain(f"answered {answer.status_code}", _seconds(answer.headers.get("Retry-After")))
        if not answer.is_success:
            raise PublishBlocked(
                f"sink {self.name}: connection {self._connection} answered {answer.status_code} to the records from "
                f"{chunk[0].key}: {answer.text[:200]!r}"
            )


def _first_done(waiting: set[Future[None]]) -> set[Future[None]]:
    """Wait for one; raise what it raised; return the others."""
    done, rest = wait(waiting, return_when=FIRST_COMPLETED)
    for one in done:
        one.result()
    return rest


_growing = tenacity.wait_exponential_jitter(initial=0.2, max=_LONGEST_PAUSE)


def _pause(state: tenacity.RetryCallState) -> float:
    failed: Any = state.outcome.exception() if state.outcome else None
    asked = failed.after if isinstance(failed, _TryAgain) else None
    return float(_growing(state)) if asked is None else min(asked, _LONGEST_PAUSE)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None  # a date: growing pauses will do
