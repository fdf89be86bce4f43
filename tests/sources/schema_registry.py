"""A schema registry on loopback that speaks as much of Confluent's API as readers and writers need. The real one isn't
on Maven Central, it comes from its maker's own repository."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

HOST = "127.0.0.1"


@dataclass
class Registry:
    """`subjects`: subject → version → what is told of it. `login`: what the header Authorization has to be."""

    subjects: dict[str, dict[int, Mapping[str, Any]]] = field(default_factory=dict)
    login: str | None = None
    failing: int = 0  #: so many of the next requests get a 503
    asked: list[str] = field(default_factory=list)
    headers: list[str | None] = field(default_factory=list)  #: Authorization, of each request
    moved: str | None = None  #: where every request is sent to
    behind: dict[int, int] = field(default_factory=dict)  #: id → in how many listings it isn't yet
    refusing: int = 0  #: the status of the answer to every schema that isn't there yet
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def register(self, subject: str, id: int, schema: Any, **more: Any) -> None:
        versions = self.subjects.setdefault(subject, {})
        number = len(versions) + 1
        text = schema if isinstance(schema, str) else json.dumps(schema)
        versions[number] = {"subject": subject, "version": number, "id": id, "schema": text, **more}

    def answer(self, path: str, authorization: str | None, posted: Any = None) -> tuple[int, Any]:
        self.asked.append(path if posted is None else f"POST {path}")
        self.headers.append(authorization)
        if self.failing:
            self.failing -= 1
            return 503, None
        if self.login is not None and authorization != self.login:
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        match urlsplit(path).path.strip("/").split("/"):
            case ["subjects", subject, "versions"] if posted is not None:
                return self._take(unquote(subject), posted["schema"])
            case ["subjects", subject, "versions", *version]:
                versions = self.subjects.get(unquote(subject))
            case ["schemas", "ids", id, *what]:
                return self._answer_by_id(int(id), bool(what))
            case _:
                return 404, None
        if versions is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if version == ["latest"]:
            return 200, versions[max(versions)]
        return 200, versions[int(version[0])] if version else sorted(filter(partial(self._lists, versions), versions))

    def _lists(self, versions: Mapping[int, Mapping[str, Any]], number: int) -> bool:
        id = versions[number]["id"]
        self.behind[id] = self.behind.get(id, 0) - 1
        return self.behind[id] < 0

    def _answer_by_id(self, id: int, places: bool) -> tuple[int, Any]:
        found = [one for versions in self.subjects.values() for one in versions.values() if one["id"] == id]
        if not found:
            return 404, {"error_code": 40403, "message": f"Schema {id} not found"}
        if places:
            return 200, [{"subject": one["subject"], "version": one["version"]} for one in found]
        return 200, {name: value for name, value in found[0].items() if name not in ("subject", "version", "id")}

    def _take(self, subject: str, schema: str) -> tuple[int, Any]:
        """A schema has one id, whatever subjects it is of."""
        known = {one["schema"]: one["id"] for versions in self.subjects.values() for one in versions.values()}
        id = known.get(schema, max(known.values(), default=0) + 1)
        there = [one["schema"] for one in self.subjects.get(subject, {}).values()]
        if schema not in there:
            if self.refusing:
                return self.refusing, {"error_code": self.refusing, "message": "s3cr3t"}
            self.register(subject, id, schema)
        return 200, {"id": id}


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    """On a free port, until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self) -> None:
            self._answer(None)

        def _answer(self, posted: Any) -> None:
            if registry.moved is not None:
                self.send_response(307)
                self.send_header("Location", registry.moved + self.path)
                self.end_headers()
                return
            status, told = registry.answer(self.path, self.headers.get("Authorization"), posted)
            body = b"<html>nothing here</html>" if told is None else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    registry.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
