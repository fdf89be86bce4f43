"""Log entries that remove files by the paths of the log. deltalake percent-encodes the path of each `remove`; one that
differs from the path of the `add`, as of what Spark wrote for text beyond ASCII, blanks and '%', removes nothing.
And entries that repeat the table's metadata."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from lockstep.epoch import Json

_PLAIN = re.compile(r"[A-Za-z0-9_./=+-]*")  #: what deltalake writes as it is


def needs_own_entry(actions: Sequence[AddAction | RemoveAction]) -> bool:
    """Whether one of the removed paths is of other characters than deltalake writes unchanged."""
    return any(isinstance(action, RemoveAction) and not _PLAIN.fullmatch(action.path) for action in actions)


def metadata_of(head: DeltaTable) -> list[Json]:
    """The action that repeats the table's metadata: a commit that is based on an older version fails on it."""
    known = head.metadata()
    action: dict[str, Json] = {"id": known.id, "name": known.name, "description": known.description}
    action |= {"format": {"provider": "parquet", "options": {}}, "schemaString": head.schema().to_json()}
    action |= {"partitionColumns": known.partition_columns, "configuration": known.configuration}
    return [{"metaData": {**action, "createdTime": known.created_time}}]


def entry_of(
    actions: Sequence[AddAction | RemoveAction], properties: CommitProperties, metadata: Sequence[Json] = ()
) -> bytes:
    """The log entry that deltalake would write of these actions, with the removed paths as they are."""
    told = {"timestamp": int(time.time() * 1000), "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    lines: list[Json] = [{"commitInfo": {**told, **(properties.custom_metadata or {})}}]
    lines += metadata
    lines += [{"txn": {"appId": one.app_id, "version": one.version}} for one in properties.app_transactions or ()]
    for action in actions:
        common = {"path": action.path, "dataChange": action.data_change, "size": action.size}
        common["partitionValues"] = dict(action.partition_values or {})
        if isinstance(action, RemoveAction):
            removal = {"deletionTimestamp": action.deletion_timestamp, "extendedFileMetadata": True}
            lines.append({"remove": {**common, **removal}})
        else:
            lines.append({"add": {**common, "modificationTime": action.modification_time, "stats": action.stats}})
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()
