"""Who may write to a table: what is the same in every database. A name may be spelled in more ways than one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import combinations

from lockstep.errors import PreflightRefused, TargetOwned
from lockstep.sinks.tables.upserts import AS_OLD_ROWS


def require_apart(sink: str, outputs: Mapping[str, tuple[str, Set[str]]]) -> None:
    """`outputs`: the table of each as the server calls it, and all names under which its rows are seen, that one
    included. Raises `PreflightRefused` where two outputs have one."""
    for (one, (table, relatives)), (other, (theirs, _)) in combinations(outputs.items(), 2):
        if theirs in relatives:
            kin = "" if table == theirs else f", of which {theirs} is a part"
            raise PreflightRefused(
                f"sink {sink}: outputs {one} and {other} go into one table, {table}{kin}, as the server reads their "
                "names: give each output a table of its own"
            )


def owned(sink: str, relation: object, owner: tuple[str, str, str], home: str, *, alone: bool) -> TargetOwned:
    """The table belongs to `owner` (deployment, pipeline, sink), as `home`'s lockstep_target says."""
    deployment, pipeline, theirs = owner
    share = "" if alone else " say shared=True in both,"
    return TargetOwned(
        f"sink {sink}: table {relation} belongs to sink {theirs} of pipeline {pipeline}, deployment {deployment}; "
        f"write elsewhere,{share} or delete its row of {home}.lockstep_target if that pipeline is gone"
        f"{AS_OLD_ROWS if alone else ''}"
    )
