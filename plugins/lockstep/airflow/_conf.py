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


#: Runs that nobody triggers by a form, which would show what the DAG has for its params.
_UNATTENDED = frozenset({"scheduled", "backfill"})


def said_of(context: Context) -> Mapping[str, Any]:
    """As `asked_of`, but without the defaults of the DAG's params in a run of the schedule or of a backfill: with a
    default that happens to be named like something of Lockstep's, every run would be asked for the same."""
    run = context.get("dag_run")
    if run is not None and getattr(run, "run_type", None) in _UNATTENDED:
        return run.conf or {}
    return asked_of(context)


def asked_of(context: Context) -> Mapping[str, Any]:
    """By name. It comes from whoever triggered the run: nothing is believed."""
    run = context.get("dag_run")
    conf = run.conf if run is not None else None
    return {**context["params"], **(conf or {})}
