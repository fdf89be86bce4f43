"""What a run is asked for: the conf that it was triggered with, over the params of its DAG.

Airflow merges the two itself, but for `[core] dag_run_conf_overrides_params = False`, which keeps a conf out of the
params. What is said to Lockstep there counts all the same: passed over, a run that was to replan or to restate would
go on as if nobody had asked, and end green.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context


def asked_of(context: Context) -> Mapping[str, Any]:
    """By name. It comes from whoever triggered the run: nothing is believed."""
    run = context.get("dag_run")
    conf = run.conf if run is not None else None
    return {**context["params"], **(conf or {})}
