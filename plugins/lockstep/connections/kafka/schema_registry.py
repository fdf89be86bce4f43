"""Client of a schema registry with Confluent's API: the Avro schemas of subjects, by the ids in records."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import tenacity

from lockstep.connections.http import login_of, parse_url
from lockstep.connections.kafka.connection import Asker

_TYPE = "application/vnd.schemaregistry.v1+json"
_TYPES = f"{_TYPE}, application/json"
_SECONDS = 30.0
_NO_SUBJECT = 40401  #: the registry's error code; a 404 without it comes from another server
_UNFIT = {
    409: "it isn't compatible with earlier ones by the rule set there. Change the columns, or that rule",
    422: "it takes none there, since it is read-only, or it refuses this one",
}
_TRIES = 4
_MAX_BY_ID = 100  #: schemas that are looked up by id at once
_log = logging.getLogger(__name__)
_requests = logging.getLogger("httpx")  # it logs the URL of every request


class _Temporary(Exception):
    """A retry may succeed."""


@dataclass(frozen=True)
class Registered:
    """A schema as JSON, with the id that records carry."""

    id: int
    schema: str


@dataclass(frozen=True)
class SchemaRegistry:
    """A schema registry. `connection`: its id. `dsn`: https://login:password@host/path, or https://:token@host/path for
    a bearer token; no message quotes it. Raises the asker's errors. `advice`: what to do about a missing subject."""

    connection: str
    who: Asker
    dsn: str = field(repr=False)
    advice: str = "say by `subjects` under which its schemas are"

    def schemas_of(self, subjects: Iterable[str]) -> dict[int, str]:
        """Return every schema that was ever registered under these subjects, as JSON by id. An id never changes its
        schema.

        Schemas that aren't Avro or refer to other subjects are left out with a warning. Raises the asker's `refused`
        for a missing subject, `unavailable`, and `InvalidPipeline` if the connection is no URL.
        """
        schemas: dict[int, str] = {}
        with self._client() as client:
            for subject in subjects:
                for version in self._ask(client, subject, "versions"):
                    schema = self._ask(client, subject, f"versions/{int(version)}")
                    if why := _unreadable_because(schema):
                        names = (self.who.name, schema["id"], subject, why)
                        _log.warning("%s: schema %s of subject %s isn't used: %s", *names)
                    else:
                        schemas[int(schema["id"])] = schema["schema"]
        return schemas

    def find_known(self, ids: Collection[int], subjects: Collection[str]) -> set[int]:
        """Return those of the ids that belong to these subjects now, also if an earlier `schemas_of` lacked them: the
        node may have lagged behind, or a cache. The newest ids that are still not listed are looked up by id. Raises as
        `schemas_of` does."""
        listed = set(ids) & self.schemas_of(subjects).keys()
        with self._client() as client:
            unlisted = sorted(set(ids) - listed)[-_MAX_BY_ID:]
            return listed | {id for id in unlisted if self._belongs(client, id, subjects)}

    def _belongs(self, client: httpx.Client, id: int, subjects: Collection[str]) -> bool:
        """Return True if the id is a readable schema of these subjects."""
        schema = self._find_by_id(client, id)
        if schema is None or _unreadable_because(schema):
            return False
        places = self._find_by_id(client, id, "/versions?deleted=true") or []  # older registries can't answer
        return any(place["subject"] in subjects for place in places)

    def latest(self, subject: str) -> Registered:
        """Return the newest schema of a subject. Raises as `schemas_of` does, and the asker's `refused` for one that
        isn't Avro or refers to other subjects."""
        with self._client() as client:
            schema = self._ask(client, subject, "versions/latest", deleted=False)
        if why := _unreadable_because(schema):
            raise self.who.refused(f"{self.who.name}: schema {schema['id']} of subject {subject} can't be used: {why}")
        return Registered(int(schema["id"]), schema["schema"])

    def register(self, subject: str, schema: str) -> Registered:
        """Register the schema under the subject, unless it is registered, and return it. Raises as `latest` does, and
        the asker's `refused` if the registry refuses it."""
        with self._client() as client:
            path = f"subjects/{quote(subject, safe='')}/versions"
            reply = self._require_content(client, "POST", subject, path, {"schema": schema})
        return Registered(int(reply["id"]), schema)

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        who = f"{self.who.name}: connection {self.connection}"
        url = parse_url(self.dsn, who)
        headers, login = login_of(url, who)
        base = url.copy_with(username=None, password=None, query=None, fragment=None)

        def may_be_logged(record: logging.LogRecord) -> bool:
            return not str(record.args).count(base.host)

        _requests.addFilter(may_be_logged)
        try:
            with httpx.Client(
                base_url=base,
                auth=login,
                headers={"Accept": _TYPES, "Cache-Control": "no-cache", **headers},
                timeout=_SECONDS,
                follow_redirects=False,
            ) as client:
                yield client
        finally:
            _requests.removeFilter(may_be_logged)

    @property
    def _name(self) -> str:
        return f"{self.who.name}: the schema registry of connection {self.connection}"

    def _ask(self, client: httpx.Client, subject: str, what: str, *, deleted: bool = True) -> Any:
        path = f"subjects/{quote(subject, safe='')}/{what}{'?deleted=true' if deleted else ''}"
        return self._require_content(client, "GET", subject, path)

    def _answer(self, client: httpx.Client, method: str, path: str, body: Any = None) -> httpx.Response:
        tries = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=tenacity.wait_random_exponential(0.1, max=2),
            retry=tenacity.retry_if_exception_type(_Temporary),
            reraise=True,
        )
        try:
            answer: httpx.Response = tries(_request, client, method, path, body)
        except _Temporary as error:
            raise self.who.unavailable(f"{self._name} doesn't answer: {error}") from None
        return answer

    def _find_by_id(self, client: httpx.Client, id: int, what: str = "") -> Any:
        """Return the schema; None if it is missing or the login may not read it, so it is of no subject of this
        source."""
        answer = self._answer(client, "GET", f"schemas/ids/{id}{what}")
        content = _json(answer)
        if answer.status_code == 200 and content is not None:
            return content
        if answer.status_code in (403, 404):
            return None
        raise self.who.refused(f"{self._name} answers {answer.status_code} for schema {id}: is it one?")

    def _require_content(self, client: httpx.Client, method: str, subject: str, path: str, body: Any = None) -> Any:
        answer, registry = self._answer(client, method, path, body), self._name
        content = _json(answer)
        if answer.status_code == 200 and content is not None:
            return content
        if isinstance(content, dict) and content.get("error_code") == _NO_SUBJECT:
            raise self.who.refused(f"{registry} has no subject {subject}: {self.advice}")
        if body is not None and answer.status_code in _UNFIT:
            why = _UNFIT[answer.status_code]
            raise self.who.refused(
                f"{registry} doesn't take the schema of these rows for subject {subject} ({answer.status_code}): {why}"
            )
        may = "read" if body is None else "register schemas"
        raise self.who.refused(
            f"{registry} answers {answer.status_code} for subject {subject}: is it one, and may the login {may} there?"
        )


def _unreadable_because(schema: Any) -> str:
    """Return why the schema can't be used; empty if it can."""
    kind, references = schema.get("schemaType", "AVRO"), schema.get("references", [])
    return f"it is {kind}" if kind != "AVRO" else "it refers to other subjects" if references else ""


def _request(client: httpx.Client, method: str, path: str, body: Any) -> httpx.Response:
    try:
        answer = client.request(method, path, json=body, headers={"Content-Type": _TYPE} if body is not None else None)
    except httpx.HTTPError as error:
        raise _Temporary(type(error).__name__) from None  # its text may have the URL
    if answer.status_code >= 500 or answer.status_code in (408, 429):
        raise _Temporary(str(answer.status_code))
    return answer


def _json(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        return None
