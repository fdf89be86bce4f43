"""What the columns of an output are made of, as far as Spark's plan tells: OpenLineage's column lineage.

It travels from the job's result by the manifest to `publish`. Nothing but lineage reads it, and no epoch fails for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lockstep.epoch import Json

MOST_COLUMNS = 1000  #: of an output
MOST_BYTES = 64 << 10  #: of JSON, of all outputs of an epoch: it becomes a part of the manifest


class How(StrEnum):
    """How a column of a source has its part in a column, or in which rows there are; OpenLineage's words."""

    IDENTITY = "IDENTITY"  #: its value is the value
    TRANSFORMATION = "TRANSFORMATION"  #: the value is computed from it
    AGGREGATION = "AGGREGATION"  #: the value is computed from it, of many rows
    CONDITIONAL = "CONDITIONAL"  #: it decides which value it is
    WINDOW = "WINDOW"  #: it decides which rows a window function sees, and in which order
    FILTER = "FILTER"  #: it decides which rows there are
    JOIN = "JOIN"  #: it decides which rows are joined
    GROUP_BY = "GROUP_BY"  #: it decides which rows become one
    SORT = "SORT"  #: it decides in which order they are

    @property
    def is_direct(self) -> bool:
        """Whether the value comes from it."""
        return self in (How.IDENTITY, How.TRANSFORMATION, How.AGGREGATION)


@dataclass(frozen=True, order=True)
class Part:
    """One column of a source, and how it has its part."""

    source: str
    column: str
    how: How


Parts = frozenset[Part]


@dataclass(frozen=True)
class ColumnLineage:
    """Of one output. `columns`: what each is made of, in order; None where that isn't known. `rows`: by what the rows
    are chosen, joined, grouped and ordered; None unless all of that is known."""

    columns: Mapping[str, Parts | None]
    rows: Parts | None = None

    def to_json(self) -> Json:
        return {
            "columns": [[name, _parts_to_json(parts)] for name, parts in self.columns.items()],
            "rows": _parts_to_json(self.rows),
        }

    @classmethod
    def from_json(cls, value: Json) -> ColumnLineage:
        """Raises ValueError, KeyError or TypeError for anything else."""
        return cls({str(name): _parts_of(parts) for name, parts in value["columns"]}, _parts_of(value["rows"]))


def _parts_to_json(parts: Parts | None) -> Json:
    return None if parts is None else [[one.source, one.column, one.how.value] for one in sorted(parts)]


def _parts_of(value: Json) -> Parts | None:
    return None if value is None else frozenset(Part(str(source), str(name), How(how)) for source, name, how in value)


def lineage_to_json(found: Mapping[str, ColumnLineage]) -> dict[str, Json]:
    """By output."""
    return {name: one.to_json() for name, one in found.items()}


def lineage_from_json(value: Json) -> dict[str, ColumnLineage]:
    """What `lineage_to_json` made; nothing of what can't be read: it is told by a process of another version, say."""
    try:
        return {str(name): ColumnLineage.from_json(one) for name, one in value.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def bounded(found: Mapping[str, ColumnLineage]) -> dict[str, ColumnLineage]:
    """Without outputs of too many columns; nothing if the others' is too long."""
    few = {name: one for name, one in found.items() if len(one.columns) <= MOST_COLUMNS}
    return few if len(json.dumps(lineage_to_json(few))) <= MOST_BYTES else {}


def sealed_lineage(
    found: Mapping[str, ColumnLineage], columns: Mapping[str, Sequence[str]], sources: Iterable[str]
) -> dict[str, ColumnLineage]:
    """What of a job's word can be true of the `columns` that were sealed, by output, and of the epoch's `sources`."""
    known = set(sources)
    sound = {name: one for name, one in found.items() if list(one.columns) == list(columns.get(name, ()))}
    return bounded({name: one for name, one in sound.items() if {part.source for part in _all_parts(one)} <= known})


def _all_parts(lineage: ColumnLineage) -> Iterable[Part]:
    for parts in (*lineage.columns.values(), lineage.rows):
        yield from parts or ()
