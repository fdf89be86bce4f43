"""Where compactions write below a table, and whose a file there is.

`_lockstep/<deployment>/<pipeline>/compacted/<number>/part-*.parquet`: beside the epochs' own folders, in the folder
that readers and VACUUM pass over, so that nobody removes what a compaction under way has written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ROOT, COMPACTED = "_lockstep", "compacted"
FOREIGN = "that others wrote"


@dataclass(frozen=True)
class CompactionFolder:
    """Of one pipeline below one table."""

    deployment: str
    pipeline: str

    @property
    def all(self) -> str:
        return f"{ROOT}/{self.deployment}/{self.pipeline}/{COMPACTED}"

    def of(self, number: int) -> str:
        return f"{self.all}/{number}"

    def owner_of(self, path: str) -> tuple[int | None, str | None]:
        """Epoch that brought the file, None of one that a compaction wrote; and why it isn't Lockstep's to compact."""
        own = re.search(rf"(?:^|/){ROOT}/{re.escape(f'{self.deployment}/{self.pipeline}')}/(\w+)/\d+/", path)
        if own is None:
            return None, FOREIGN
        if own[1] == COMPACTED:
            return None, None
        return (int(own[1]), None) if own[1].isdigit() else (None, FOREIGN)
