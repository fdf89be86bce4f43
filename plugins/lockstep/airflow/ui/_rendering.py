"""Templates and their filters. All values of the ledger are text and are escaped."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from airflow._shared.secrets_masker import redact
from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lockstep.airflow._actors import TaskActor
from lockstep.airflow.page import MOUNT
from lockstep.epoch import Json, RunKey
from lockstep.ledger.report import LineEntry
from lockstep.observability.formatting import short_age, short_interval
from lockstep.observability.suggestions import OF_NO_DAG

_SLOTS = 60  #: minimal number of columns of a time line
_HEIGHT = 40
_GAP = 0.08  #: on each side of a bar, as a share of its column
_MANY = 100  #: items of a list that are shown

_environment = Environment(
    loader=PackageLoader("lockstep.airflow.ui"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # they come with the package: compiled once, and no look at the file for each page
)


@dataclass(frozen=True)
class Timeline:
    """Oldest epoch on the left, a column for each. A thousand epochs need only a few elements: all that look alike
    are one path.

    `paths`: by look. `labels`: a line for each epoch, its number first; the page's script shows the one under the
    pointer. `listed`: how many of the `epochs`, on the right, are in the table.
    """

    paths: dict[str, str]
    labels: str
    epochs: int
    listed: int
    width: int
    height: int = _HEIGHT


def render(request: Request, template: str, code: int = 200, **values: Any) -> HTMLResponse:
    page = _environment.get_template(template)
    return HTMLResponse(page.render(links=Links(request.state.root), **values), code)


@dataclass(frozen=True)
class Links:
    """Paths below the path at which Airflow is served."""

    root: str

    def __call__(self, *parts: object, **query: object) -> str:
        """Path of a page of Lockstep; `query` without values that are None."""
        path = "/".join(quote(str(part), safe="") for part in parts)
        parameters = urlencode({name: value for name, value in query.items() if value is not None})
        return f"{self.root}/{path}{f'?{parameters}' if parameters else ''}"

    def dag(self, dag_id: str) -> str:
        return f"{self._airflow}/dags/{quote(dag_id, safe='')}"

    def run(self, run: RunKey) -> str | None:
        """Path of the run; None if it isn't one of Airflow's. Runs of a pack or of several pipelines link to the
        whole run."""
        if run.dag_id in OF_NO_DAG:
            return None
        return f"{self.dag(run.dag_id)}/runs/{quote(run.whole.run_id, safe='')}"

    def task(self, actor: str) -> str | None:
        """Path of the task that is named in the history; None if it wasn't a task."""
        actor_task = TaskActor.parse(actor)
        if actor_task is None:
            return None
        run = f"{self.dag(actor_task.dag_id)}/runs/{quote(actor_task.run_id, safe='')}"
        mapped = f"/mapped/{actor_task.map_index}" if actor_task.map_index is not None else ""
        return f"{run}/tasks/{quote(actor_task.task_id, safe='')}{mapped}"

    @property
    def _airflow(self) -> str:
        return self.root.removesuffix(MOUNT)


def timeline(line: Sequence[LineEntry], listed: int, stuck: Collection[int]) -> Timeline:
    """The time line of `line`, highest number first, of which the page's table has the first `listed`; `stuck`:
    numbers of epochs."""
    oldest_first = line[::-1]
    max_rows = max((entry.rows or 0 for entry in line), default=0)
    paths: dict[str, list[str]] = {}
    labels = []
    for place, entry in enumerate(oldest_first):
        share = math.log1p(entry.rows or 0) / math.log1p(max_rows) if max_rows else 0.0
        height = round(6 + share * (_HEIGHT - 6), 1)
        look = "stuck" if entry.epoch in stuck else entry.state.value
        paths.setdefault(look, []).append(f"M{place + _GAP} {_HEIGHT}v-{height}h{1 - 2 * _GAP}v{height}z")
        span = f" {short_interval(entry.interval)}" if entry.interval else ""
        rows = f", {entry.rows:,} rows" if entry.rows is not None else ""
        labels.append(f"{entry.epoch}{span}: {entry.state}{rows}")
    return Timeline(
        {look: "".join(parts) for look, parts in paths.items()},
        "\n".join(labels),
        len(line),
        listed,
        max(_SLOTS, len(line)),
    )


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "seconds")


def _with_code(text: str) -> Markup:
    """Format text between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def _as_json(value: Json) -> str:
    """JSON for people: long lists are cut. Plans contain no secrets; values under names of secrets are masked all
    the same."""
    return json.dumps(redact(_cut(value)), indent=2, ensure_ascii=False, default=str)


def _cut(value: Json) -> Json:
    """Cut long lists: a plan may name ten thousand files."""
    match value:
        case dict():
            shortened = {name: _cut(item) for name, item in list(value.items())[:_MANY]}
            return {**shortened, "…": _more(value)} if len(value) > _MANY else shortened
        case list() | tuple():
            items = [_cut(item) for item in value[:_MANY]]
            return [*items, _more(value)] if len(value) > _MANY else items
    return value


def _more(of: Collection[Json]) -> str:
    return f"and {len(of) - _MANY:,} more in the ledger"


_environment.filters.update(
    age=short_age,
    interval=short_interval,
    moment=_moment,
    as_json=_as_json,
    with_code=_with_code,
    number=lambda value: f"{value:,}",
)
