"""Whether a run is to replace what is published: its conf says so, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.steps.generations import require_reason

if TYPE_CHECKING:
    from airflow.sdk import Context

RESTATE = "lockstep_restate"


def reason_of(context: Context) -> str | None:
    """Params come from whoever triggered the run: nothing is believed. Raises `RestateRefused`."""
    return require_reason(context["params"].get(RESTATE))
