"""What OpenLineage has no facets for. Imported by who has its client."""

from __future__ import annotations

from typing import Any

from attrs import define
from openlineage.client.facet_v2 import InputDatasetFacet, RunFacet


@define
class RangeFacet(InputDatasetFacet):
    """The frozen range that an epoch has read of its source: the source's positions, as JSON."""

    start: str
    end: str


@define
class EpochsFacet(RunFacet):
    """The epochs that a task has had in hand, each with pipeline, number, state, attempt, interval and manifest."""

    epochs: list[dict[str, Any]]
