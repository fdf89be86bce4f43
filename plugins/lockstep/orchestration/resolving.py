"""Where a run of the recovery DAG finds a person's word on a decided epoch: in the ledger, to which the run points.

Who may trigger the DAG may recover every pipeline, which is always safe. Saying what became of rows isn't: the page
lets those do it who may change the pipeline's runs, and what they say stands in the history before the run begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.errors import IllegalTransition

if TYPE_CHECKING:
    from airflow.sdk import Context

PIPELINE, EPOCH, SINK = "pipeline", "resolve_epoch", "resolve_sink"


def asked_to_resolve(pipeline: str, context: Context) -> tuple[int, str] | None:
    """Epoch and sink, if the run names them and this pipeline. Raises `IllegalTransition` for half of it."""
    params = context["params"]
    epoch, sink = params.get(EPOCH), params.get(SINK)
    if epoch is None and sink is None:
        return None
    if params.get(PIPELINE) == pipeline and isinstance(sink, str) and type(epoch) is int:  # True is none
        return epoch, sink
    raise IllegalTransition(f"to resolve say {PIPELINE}, {EPOCH} (a number) and {SINK}, as the page does")
