"""What outside systems' catalogues of lineage call a table, a topic or a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, order=True)
class Dataset:
    """By OpenLineage's rules of naming (openlineage.io/docs/spec/naming), so that whoever else names the same place
    names the same dataset. No login is a part of it."""

    namespace: str
    name: str

    @classmethod
    def on(cls, system: str, host: str, port: int | str, name: str) -> Self:
        """What a server has under this name. Of several hosts the first, and a socket is of this machine."""
        first = host.split(",")[0]
        return cls(f"{system}://{first if first and not first.startswith('/') else 'localhost'}:{port}", name)
