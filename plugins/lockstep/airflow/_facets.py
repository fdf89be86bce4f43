"""Lockstep's own facets for OpenLineage. Imported only where its client is installed."""

from __future__ import annotations

from typing import Any

from attrs import define
from openlineage.client.facet_v2 import InputDatasetFacet, RunFacet


@define
class RangeFacet(InputDatasetFacet):
    """The frozen range that an epoch has read: positions of the source as JSON."""

    start: str
    end: str


@define
class EpochsFacet(RunFacet):
    """The epochs that a task has moved, each with pipeline, number, state, attempt, interval and manifest."""

    epochs: list[dict[str, Any]]
