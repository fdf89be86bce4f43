"""A schema registry, as Confluent's API has it: the Avro schemas of subjects, by the ids that stand in records."""

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
_NO_SUBJECT = 40401  #: a registry's own number; a 404 without it is somebody else's
_UNFIT = {
    409: "it isn't compatible with those before it, by the rule that is set there. Change the columns, or that rule",
    422: "it takes none there, as it is for readers alone, or not this one",
}
_TRIES = 4
_ONE_BY_ONE = 100  #: schemas that are asked for by their ids
_log = logging.getLogger(__name__)
_requests = logging.getLogger("httpx")  # it logs the URL of every request


class _Passing(Exception):
    """Another try may be answered."""


@dataclass(frozen=True)
class Registered:
    """A schema, as JSON, by the id that stands in records."""

    id: int
    schema: str


@dataclass(frozen=True)
class SchemaRegistry:
    """`connection`: its id. `dsn`: https://login:password@host/path, or https://:token@host/path for a bearer token;
    nothing of it is ever told. Errors are the asker's."""

    connection: str
    who: Asker
    dsn: str = field(repr=False)
    advice: str = "say by `subjects` under which its schemas are"  #: where a subject isn't there

    def schemas_of(self, subjects: Iterable[str]) -> dict[int, str]:
        """Every schema that was ever registered under these subjects, by id: as JSON. An id means one schema for good.

        Left out, with a warning: those that are no Avro, and those that refer to other subjects. Raises the asker's
        `refused` for a subject that isn't there, `unavailable`, `InvalidPipeline` for a connection that is no URL.
        """
        schemas: dict[int, str] = {}
        with self._client() as client:
            for subject in subjects:
                for version in self._ask(client, subject, "versions"):
                    schema = self._ask(client, subject, f"versions/{int(version)}")
                    if why := _why_unreadable(schema):
                        told = (self.who.name, schema["id"], subject, why)
                        _log.warning("%s: schema %s of subject %s isn't used: %s", *told)
                    else:
                        schemas[int(schema["id"])] = schema["schema"]
        return schemas

    def find_known(self, ids: Collection[int], subjects: Collection[str]) -> set[int]:
        """Those of the ids that `schemas_of` should have told by now: a node that answered may have been behind, or a
        cache on the way. The newest that it still doesn't list are asked for by their ids.

        Raises as `schemas_of` does.
        """
        listed = set(ids) & self.schemas_of(subjects).keys()
        with self._client() as client:
            unlisted = sorted(set(ids) - listed)[-_ONE_BY_ONE:]
            return listed | {id for id in unlisted if self._belongs(client, id, subjects)}

    def _belongs(self, client: httpx.Client, id: int, subjects: Collection[str]) -> bool:
        """Whether it is a schema of these subjects that can be read."""
        schema = self._ask_for(client, id)
        if schema is None or _why_unreadable(schema):
            return False
        places = self._ask_for(client, id, "/versions?deleted=true") or []  # registries of old can't tell
        return any(place["subject"] in subjects for place in places)

    def latest(self, subject: str) -> Registered:
        """The newest schema of a subject. Raises as `schemas_of` does, and the asker's `refused` for one that is no
        Avro or refers to other subjects."""
        with self._client() as client:
            schema = self._ask(client, subject, "versions/latest", deleted=False)
        if why := _why_unreadable(schema):
            raise self.who.refused(f"{self.who.name}: schema {schema['id']} of subject {subject} can't be used: {why}")
        return Registered(int(schema["id"]), schema["schema"])

    def register(self, subject: str, schema: str) -> Registered:
        """The schema, which is the subject's afterwards, if it wasn't before. Raises as `latest` does, and the asker's
        `refused` for one that the registry doesn't take."""
        with self._client() as client:
            path = f"subjects/{quote(subject, safe='')}/versions"
            reply = self._told(client, "POST", subject, path, {"schema": schema})
        return Registered(int(reply["id"]), schema)

    def _is_readable(self, subject: str, found: Any) -> bool:
        if why := _why_unreadable(found):
            _log.warning("%s: schema %s of subject %s isn't used: %s", self.who.name, found["id"], subject, why)
        return not why

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
        return self._told(client, "GET", subject, path)

    def _answer(self, client: httpx.Client, method: str, path: str, body: Any = None) -> httpx.Response:
        tries = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=tenacity.wait_random_exponential(0.1, max=2),
            retry=tenacity.retry_if_exception_type(_Passing),
            reraise=True,
        )
        try:
            answer: httpx.Response = tries(_request, client, method, path, body)
        except _Passing as error:
            raise self.who.unavailable(f"{self._name} doesn't answer: {error}") from None
        return answer

    def _ask_for(self, client: httpx.Client, id: int, what: str = "") -> Any:
        """None if the registry has no such schema, or not for this login: which reads all of its own subjects."""
        answer = self._answer(client, "GET", f"schemas/ids/{id}{what}")
        content = _json(answer)
        if answer.status_code == 200 and content is not None:
            return content
        if answer.status_code in (403, 404):
            return None
        raise self.who.refused(f"{self._name} answers {answer.status_code} for schema {id}: is it one?")

    def _told(self, client: httpx.Client, method: str, subject: str, path: str, body: Any = None) -> Any:
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


def _why_unreadable(schema: Any) -> str:
    """Why records by it are bad; empty if they aren't."""
    kind, references = schema.get("schemaType", "AVRO"), schema.get("references", [])
    return f"it is {kind}" if kind != "AVRO" else "it refers to other subjects" if references else ""


def _request(client: httpx.Client, method: str, path: str, body: Any) -> httpx.Response:
    try:
        answer = client.request(method, path, json=body, headers={"Content-Type": _TYPE} if body is not None else None)
    except httpx.HTTPError as error:
        raise _Passing(type(error).__name__) from None  # its text may have the URL
    if answer.status_code >= 500 or answer.status_code in (408, 429):
        raise _Passing(str(answer.status_code))
    return answer


def _json(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        return None
