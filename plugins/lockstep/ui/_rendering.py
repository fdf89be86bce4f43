"""Templates, and how values look in them. Whatever stands in the ledger is text: everything is escaped."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from airflow._shared.secrets_masker import redact
from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lockstep.brevity import short_age, short_interval
from lockstep.epoch import PACKED, Json, RunKey
from lockstep.ledger.report import EpochStatus
from lockstep.orchestration.page import MOUNT
from lockstep.remedies import OF_NO_DAG

_SLOTS = 60  #: of a time line at least: a few epochs don't become walls
_HEIGHT = 40

_environment = Environment(
    loader=PackageLoader("lockstep.ui"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Bar:
    """One epoch on the time line: how far to the right, how high (its rows, by their logarithm), and what it is."""

    epoch: int
    x: int
    height: float
    state: str
    title: str


@dataclass(frozen=True)
class Timeline:
    """Oldest to the left."""

    bars: tuple[Bar, ...]
    width: int
    height: int = _HEIGHT


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    page = _environment.get_template(template)
    return HTMLResponse(page.render(links=Links(request.state.root), **values), status)


@dataclass(frozen=True)
class Links:
    """Paths below wherever Airflow is served."""

    root: str

    def __call__(self, *parts: object, **query: object) -> str:
        """Of a page of Lockstep's; `query` without what is None."""
        path = "/".join(quote(str(part), safe="") for part in parts)
        asked = urlencode({name: value for name, value in query.items() if value is not None})
        return f"{self.root}/{path}{f'?{asked}' if asked else ''}"

    def dag(self, dag_id: str) -> str:
        return f"{self._airflow}/dags/{quote(dag_id, safe='')}"

    def run(self, run: RunKey) -> str | None:
        """A run that moves a pack has a name for each of its epochs. None: it was no run of Airflow's."""
        if run.dag_id in OF_NO_DAG:
            return None
        return f"{self.dag(run.dag_id)}/runs/{quote(run.run_id.partition(PACKED)[0], safe='')}"

    @property
    def _airflow(self) -> str:
        return self.root.removesuffix(MOUNT)


def timeline(epochs: Sequence[EpochStatus]) -> Timeline:
    oldest_first = sorted(epochs, key=lambda one: one.epoch.id)
    most = max((sum(one.rows.values()) for one in oldest_first), default=0)
    bars = tuple(
        Bar(one.epoch.id, place, _bar_height(sum(one.rows.values()), most), _look(one), _title(one))
        for place, one in enumerate(oldest_first)
    )
    return Timeline(bars, max(_SLOTS, len(bars)))


def _bar_height(rows: int, most: int) -> float:
    share = math.log1p(rows) / math.log1p(most) if most else 0.0
    return round(6 + share * (_HEIGHT - 6), 1)


def _look(one: EpochStatus) -> str:
    return "stuck" if one.stuck else one.epoch.state.value


def _title(one: EpochStatus) -> str:
    span = f" {short_interval(one.epoch.interval)}" if one.epoch.interval else ""
    rows = f", {sum(one.rows.values()):,} rows" if one.rows else ""
    return f"epoch {one.epoch.id}{span}: {one.epoch.state}{rows}"


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _with_code(told: str) -> Markup:
    """What stands between backticks is a command, to be copied."""
    parts = told.split("`")
    if len(parts) % 2 == 0:
        return escape(told)
    return Markup("").join(
        Markup("<code>{}</code>").format(one) if n % 2 else escape(one) for n, one in enumerate(parts)
    )


def _as_json(value: Json) -> str:
    """For people. Plans hold no secrets; whatever is called like one is masked all the same."""
    return json.dumps(redact(value), indent=2, ensure_ascii=False, default=str)


_environment.filters.update(
    age=short_age,
    interval=short_interval,
    moment=_moment,
    as_json=_as_json,
    with_code=_with_code,
    number=lambda value: f"{value:,}",
)
_environment.globals["timeline"] = timeline
