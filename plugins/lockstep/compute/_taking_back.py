"""Outputs that may say of a key that it goes, and sinks that wouldn't hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep.compute._balances import Balances
from lockstep.definition.sessions import ABSORBED
from lockstep.errors import InvalidPipeline
from lockstep.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require_deletes(pipeline: Pipeline, outputs: Mapping[str, DataFrame], balances: Balances) -> None:
    """Raises `InvalidPipeline` if a sink keeps one row a key of sessions, and would keep those that are no more."""
    deaf = [
        (sink.name, output)
        for sink in pipeline.sinks
        for output in sink.outputs
        if output in outputs and sink.lacks_deletes(output)
    ]
    parts = [part for balance in balances.made.values() if balance.takes_back for part in balance.written]
    for sink, output in deaf:
        if any(part.what == "results" and part.counted.observed.uses_in(outputs[output]) for part in parts):
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: sink {sink} upserts {output}, which holds sessions that may be absorbed by "
                f'others: say deleted="{ABSORBED}" in the sink, or their rows would stay beside those of the sessions '
                "that they are part of now"
            )
