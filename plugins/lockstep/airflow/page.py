"""Where Lockstep's pages are in Airflow's UI, for links to them. The pages themselves aren't imported here: DAG
processors and tasks load the plugin, too."""

from __future__ import annotations

import importlib
from typing import Any
from urllib.parse import urlencode, urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

MOUNT = "/lockstep"
_APPLICATION = "lockstep.airflow.ui.app"


class LazyApplication:
    """The pages' application, imported by the api-server at the first request."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await importlib.import_module(_APPLICATION).app(scope, receive, send)


class EpochLink(BaseOperatorLink):
    """Link from a task to the epoch of its run."""

    name = "Epoch"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        query = {"dag_id": ti_key.dag_id, "run_id": ti_key.run_id, "pipeline": operator.pipeline.name}
        return f"{page_root()}/run?{urlencode(query)}"


def page_root() -> str:
    """Path of the pages, below the path at which Airflow is served."""
    return urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/") + MOUNT


def external_views() -> list[dict[str, str]]:
    """An entry in Airflow's navigation, and a tab for every DAG and every run."""
    root = page_root()
    return [
        {"name": "Lockstep", "href": f"{root}/", "destination": "nav", "url_route": "lockstep", "category": "browse"},
        {
            "name": "Epochs",
            "href": f"{root}/dag?dag_id={{DAG_ID}}",
            "destination": "dag",
            "url_route": "lockstep-epochs",
        },
        {
            "name": "Epoch",
            "href": f"{root}/run?dag_id={{DAG_ID}}&run_id={{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "lockstep-epoch",
        },
    ]
