"""A source that each epoch reads whole, as it is at its begin: what a stream or a daily file is joined with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lockstep.connections.names import Dataset
from lockstep.epoch import Json, KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.open_source import OpenSource


@dataclass(frozen=True, eq=False)
class Snapshot(Source):
    """All rows of `source`, frozen by their position at the first `begin` of each epoch, and used up by none.

    It goes beside sources whose rows epochs divide between them, by interval or by a cursor. Its files are claimed by
    nobody. Of what was frozen each attempt reads the same rows, or raises `SourceChanged`. Positions are those of
    `source`. Raises `InvalidPipeline` for a source that can't keep that.
    """

    source: Source
    identity: KeyedBy = field(init=False)  #: INTERVAL: it is another one in each interval, so epochs have to be some
    is_snapshot: ClassVar[bool] = True

    def __post_init__(self) -> None:
        what = f"a snapshot of {self.source.reads_from()}"
        if (why := self.source.why_no_snapshot()) is not None:
            raise InvalidPipeline(f"{what} can't be taken: {why}")
        if self.source.spec() is None:
            raise InvalidPipeline(
                f"{what} can't be taken: no plan can say what the source is, so that another process could open it "
                "(its class has to be importable, its arguments plain values)"
            )
        object.__setattr__(self, "identity", self.source.identity)

    def arguments(self) -> dict[str, Json]:
        return {"source": self.source.spec()}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Json], settings: Mapping[str, Json]) -> Source:
        planned, defined = arguments["source"], settings.get("source") or {}
        alike = defined.get("type") == planned["type"]
        return cls(Source.from_spec(planned, defined["arguments"] if alike else {}))

    def frozen_arguments(self) -> dict[str, Json] | None:
        return {"source": [type(self.source).__qualname__, self.source.frozen_arguments()]}

    def reads_from(self) -> str:
        return f"a snapshot of {self.source.reads_from()}"

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        return self.source.datasets(connections)

    @property
    def connections(self) -> tuple[str, ...]:
        return self.source.connections

    def why_no_snapshot(self) -> str | None:
        return "it is one already"

    def open(self, context: SourceContext) -> OpenSource:
        return self.source.open_snapshot(context)
