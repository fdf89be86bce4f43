"""One warm session of a Spark Connect server for all epochs of a pipeline, which none of them can change.

Spark compiles generated code again for each session; a reused session has it already. Sharing is safe because no epoch
changes the session: a request that would (a setting, a temporary view, a function, an artifact) is refused before it is
sent, and the work is done again in a session of its own. So any number of executions may use it at once, from any
number of machines, and a dead or frozen execution doesn't affect others: its operations have its own tag, and what it
stores on the server has ids of its own.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import base_pb2 as pb2
from pyspark.sql.connect.session import SparkSession

from lockstep.distribution import __version__
from lockstep.spark._pyspark import await_releases, release_checkpoints, requests_of
from lockstep.spark.address import reading_address

#: Seconds for which a session is used, by any clock. A server drops a session that is idle for an hour.
LIFETIME = 1800
#: Bytes of local frames that one execution may leave in the session.
UPLOADED = 16_000_000
_SECONDS = (
    10.0  #: for requests that are being sent when a session is left; requests without an answer are then cancelled
)
_NAMESPACE = uuid.UUID("9a1c5f0e-5d0b-4c57-9f0a-1c0d6f5b7e21")
_SESSION_ID = "session_id"
_FORGET = "remove_cached_remote_relation_command"
#: Commands that leave nothing in the session, or only objects with ids of their own.
_COMMANDS = frozenset({"write_operation", "write_operation_v2", "checkpoint_command", _FORGET})
#: A query. Other SQL statements may be a setting, a view, a variable, a cache.
_QUERY = re.compile(r"\s*(select|with|from|values|table)\b", re.IGNORECASE)
_READING = frozenset({"get", "get_with_default", "get_option", "get_all", "is_modifiable"})
#: Redaction of displayed plans changes no rows; every epoch with a Kafka login sets the same.
_HIDING = "spark.sql.redaction.string.regex"
#: These refer to earlier requests, and are sent by pyspark's own threads.
_ALWAYS = requests_of(
    pb2, "ReattachExecuteRequest", "ReleaseExecuteRequest", "FetchErrorDetailsRequest", "GetStatusRequest"
)


class SessionTouched(BaseException):
    """Work in a shared session tried to change it. Not an `Exception`, so that a transform doesn't catch it."""


def can_share(url: str) -> bool:
    """False if `url` names a session of the user's, which isn't shared. Raises `NotConfigured`."""
    with reading_address():
        return DefaultChannelBuilder(url).session_id is None


def session_id(name: str) -> str:
    """The id of the session of `name` in all processes; it changes every half hour."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join((name, __version__, str(int(time.time()) // LIFETIME)))))


class SharedSession:
    """This process's client of the session of `name`. `permitted`: settings that all processes set to the same
    values."""

    def __init__(self, url: str, name: str, permitted: Mapping[str, str]) -> None:
        self._guard = _Guard(permitted)
        self._builder = DefaultChannelBuilder(url)
        self._builder.set(_SESSION_ID, session_id(name))
        self._builder.add_interceptor(self._guard)

    def join(self) -> SparkSession:
        """Open the session, which is created if it doesn't exist. Closing it only leaves it."""
        spark: SparkSession = SparkSession.builder.channelBuilder(self._builder).create()
        spark.release_session_on_close = False
        return spark

    def leave(self, spark: SparkSession) -> None:
        """Call it before the session is closed, even while other threads still send requests."""
        await_releases(spark.client, _SECONDS)
        self._guard.leave()

    def forget(self, spark: SparkSession) -> None:
        """Release this process's checkpoints at the server, which would stay as long as the session."""
        release_checkpoints(spark.client, self._guard.checkpoints(), _SECONDS)


class _Guard(  # grpc has no types
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
):
    """Refuses requests that change the session, and after the first such request all requests: its error may be
    caught."""

    def __init__(self, permitted: Mapping[str, str]) -> None:
        self._permitted = permitted
        self._touched: str | None = None
        self._checkpoints: set[str] = set()
        self._uploaded = 0
        self._lock = threading.Condition()
        self._sending = 0
        self._ended = False

    def checkpoints(self) -> set[str]:
        """Ids of checkpoints that weren't released."""
        with self._lock:
            return set(self._checkpoints)

    def leave(self) -> None:
        """Send nothing from now on: gRPC crashes the process if a call begins on a closed channel."""
        with self._lock:
            self._ended = True
            self._lock.wait_for(lambda: self._sending == 0, _SECONDS)

    def _send(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        with self._lock:
            if self._ended:
                raise RuntimeError("the shared session was left")
            self._sending += 1
        try:
            return continuation(details, request)
        finally:
            with self._lock:
                self._sending -= 1
                self._lock.notify_all()

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        self._require_harmless(request)
        return self._send(continuation, details, request)

    def intercept_unary_stream(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        self._require_harmless(request)
        return self._noting(self._send(continuation, details, request))

    def intercept_stream_unary(self, continuation: Callable[..., Any], details: Any, requests: Any) -> Any:
        uploads = list(requests)
        self._require_harmless(uploads)
        return self._send(continuation, details, iter(uploads))

    def _require_harmless(self, request: Any) -> None:
        if isinstance(request, _ALWAYS) or self._forgets(request) or _interrupts_own(request):
            return
        if self._touched is None and (change := self._change(request)):
            self._touched = change
        if self._touched is not None:
            raise SessionTouched(self._touched)

    def _forgets(self, request: Any) -> bool:
        if (
            not isinstance(request, pb2.ExecutePlanRequest)
            or request.plan.command.WhichOneof("command_type") != _FORGET
        ):
            return False
        with self._lock:
            self._checkpoints.discard(getattr(request.plan.command, _FORGET).relation.relation_id)
        return True

    def _noting(self, responses: Any) -> Iterator[Any]:
        for response in responses:
            if isinstance(response, pb2.ExecutePlanResponse) and response.HasField("checkpoint_command_result"):
                with self._lock:
                    self._checkpoints.add(response.checkpoint_command_result.relation.relation_id)
            yield response

    def _change(self, request: Any) -> str:
        """The change that the request would make, in a few words; "" if none."""
        if isinstance(request, pb2.ExecutePlanRequest):
            return _change_of_plan(request.plan)
        if isinstance(request, pb2.AnalyzePlanRequest):
            analysis = request.WhichOneof("analyze") or ""
            return analysis if analysis in ("persist", "unpersist") else ""
        if isinstance(request, pb2.ConfigRequest):
            return self._change_of_settings(request.operation)
        if isinstance(request, pb2.ArtifactStatusesRequest):
            return ""
        return self._change_of_artifacts(request) if isinstance(request, list) else type(request).__name__

    def _change_of_artifacts(self, uploads: Sequence[Any]) -> str:
        """The change by uploads; none for local frames, identified by the hash of their rows."""
        self._uploaded += sum(upload.ByteSize() for upload in uploads)
        if self._uploaded > UPLOADED:
            return "rows of local frames, too many to keep"
        names = [artifact.name for upload in uploads for artifact in upload.batch.artifacts]
        names += [upload.begin_chunk.name for upload in uploads if upload.HasField("begin_chunk")]
        return "" if all(name.startswith("cache/") for name in names) else f"artifacts {', '.join(names)}"

    def _change_of_settings(self, operation: pb2.ConfigRequest.Operation) -> str:
        kind = operation.WhichOneof("op_type") or ""
        if kind in _READING:
            return ""
        if kind == "set":
            changed = [
                pair.key
                for pair in operation.set.pairs
                if self._permitted.get(pair.key) != pair.value and not (pair.key == _HIDING and '"kafka' in pair.value)
            ]
            return f"settings {', '.join(changed)}" if changed else ""
        return f"settings: {kind}"


def _change_of_plan(plan: pb2.Plan) -> str:
    kind = plan.WhichOneof("op_type")
    if kind == "root":
        return "catalog" if plan.root.WhichOneof("rel_type") == "catalog" else ""
    if kind != "command":
        return f"a {kind}"
    command = plan.command.WhichOneof("command_type") or "unknown command"
    if command == "sql_command":
        statement = plan.command.sql_command
        query = statement.input.sql.query if statement.input.WhichOneof("rel_type") == "sql" else statement.sql
        return "" if _QUERY.match(query) else "a statement of SQL"
    return "" if command in _COMMANDS else command


def _interrupts_own(request: Any) -> bool:
    if not isinstance(request, pb2.InterruptRequest):
        return False
    return request.operation_tag.startswith("lockstep-") or bool(request.operation_id)
