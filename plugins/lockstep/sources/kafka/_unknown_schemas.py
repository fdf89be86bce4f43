"""Bad records that name a schema which the registry didn't tell: whether it has it by now.

Records are sent once their schema is registered, and read some time later. Yet the node of a registry that is asked may
be behind the one that registered it, and a cache on the way may answer for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockstep.sources.kafka._decoding import Decoding
from lockstep.sources.records import BAD, Records

if TYPE_CHECKING:
    from lockstep.connections.kafka.schema_registry import SchemaRegistry

_MOST = 1000  #: ids; bytes that aren't by any schema may name as many as there are records


def confirm_bad(registry: SchemaRegistry, parts: Sequence[tuple[Decoding, tuple[str, ...]]], records: Records) -> None:
    """`parts`: those that were read by their writers' schemas, each with its subjects. Only for who has found some
    bad records.

    Raises `SourceUnavailable` if one of them may be good by what the registry tells now, and what that raises.
    """
    for part, named in parts:
        unknown = _ids(records, part.column) - set(part.writers or {})
        if unknown and (known := registry.find_known(unknown, named)):
            raise registry.who.unavailable(
                f"{registry.who.name}: the schema registry of connection {registry.connection} has told the schemas "
                f"{', '.join(map(str, sorted(known)))} of {', '.join(named)} only since records by them were read, and "
                "taken for bad: a node of it was behind, or a cache on the way; nothing was sealed"
            )


def _ids(records: Records, column: str) -> set[int]:
    """Of the schemas that bad records name."""
    text, base64 = f"get_json_object({BAD}, '$.{column}')", f"get_json_object({BAD}, '$.{column}_base64')"
    data = f"coalesce(unbase64({base64}), encode({text}, 'UTF-8'))"
    named = f"hex(substring({data}, 1, 1)) = '00' AND length({data}) >= 5"
    bad = records.frame.where(f"{BAD} IS NOT NULL AND {records.every_column} AND {named}")
    id = f"CAST(conv(hex(substring({data}, 2, 4)), 16, 10) AS BIGINT) AS id"
    return {row.id for row in bad.selectExpr(id).distinct().limit(_MOST).collect()}
