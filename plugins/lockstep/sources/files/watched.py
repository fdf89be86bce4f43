"""What is new in a watched folder. The ledger is asked for names by chunks: no list of all files is made or sent."""

from __future__ import annotations

import heapq
import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lockstep.errors import SourceNotReady
from lockstep.sources.base import SourceContext
from lockstep.sources.files.changed import changed_since, require_no_rest, shown
from lockstep.sources.files.frozen import FrozenFile
from lockstep.sources.files.growing import FrozenRange, grown, next_range, require_apart, require_unknown
from lockstep.sources.files.paths import each_file

CHUNK = 10_000
_NAMED = 10  # changed files in one line of the log
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Watched:
    """A folder or pattern, and about how much of it an epoch takes."""

    where: str
    max_files: int | None = None
    max_bytes: int | None = None
    hash: bool = False

    def new_files(self, context: SourceContext) -> list[FrozenFile]:
        """The oldest files that nobody owns, within the caps. Says in the log which consumed ones have changed.

        Raises `SourceChanged` for a file that was read as a growing one, and not to its end.
        """
        new: set[str] = set()
        compared: set[str] = set()
        for number, chunk in enumerate(_chunks(self.where), start=1):
            taken = context.claimed(chunk)
            new.update(path for path in chunk if path not in taken)
            if random.randrange(number) == 0:  # noqa: S311 - one chunk of all, each as likely as the others
                compared = taken
        self._compare(context, compared)
        oldest = map(FrozenFile.of, new)
        files = sorted(oldest) if self.max_files is None else heapq.nsmallest(self.max_files, oldest)
        return [FrozenFile.of(file.path, hashed=True) if self.hash else file for file in self._capped(files)]

    def new_lines(self, context: SourceContext) -> list[FrozenRange]:
        """Of the files that have grown the complete lines behind their claims, within the caps.

        Raises `SourceChanged` for a file that isn't the one that was claimed, or has two names.
        """
        ranges: list[FrozenRange] = []
        room = self.max_bytes
        for now, claim in grown(_chunks(self.where), context.claims):
            if room is not None and room <= 0:
                break
            found = next_range(now, claim, room, hashed=self.hash)
            if found is None:
                continue
            if ranges and room is not None and found.ends - found.starts > room:
                break
            ranges.append(found)
            room = None if room is None else room - (found.ends - found.starts)
            if len(ranges) == self.max_files:
                break
        require_apart(ranges)
        _require_unknown(context, ranges)
        return ranges

    def _capped(self, files: list[FrozenFile]) -> list[FrozenFile]:
        """The oldest that fit the caps: at least one, or a file larger than the cap would stop the pipeline."""
        taken: list[FrozenFile] = []
        total = 0
        for file in files:
            total += file.size
            if taken and self.max_bytes is not None and total > self.max_bytes:
                break
            taken.append(file)
        return taken

    def _compare(self, context: SourceContext, taken: set[str]) -> None:
        claims = context.claims(taken) if taken else {}
        require_no_rest(claims)
        if changed := changed_since(claims):
            _log.warning(
                "source %s: these files changed after an epoch had taken them, and are not read again: %s",
                context.source,
                shown(changed, _NAMED),
            )


def _require_unknown(context: SourceContext, ranges: list[FrozenRange]) -> None:
    """Raises `SourceChanged` for a file that was claimed under another name."""
    new = [found for found in ranges if found.head is not None and found.starts == 0]
    alike = context.claimed_by_head({found.head for found in new if found.head}) if new else set()
    claims = list(context.claims(alike).values()) if alike else []
    for found in new if claims else ():
        require_unknown(found, claims)


def _chunks(where: str) -> Iterator[list[str]]:
    files = each_file(where)
    while chunk := list(islice(files, CHUNK)):
        _require_text(chunk)
        yield chunk


def _require_text(paths: list[str]) -> None:
    """A plan is JSON and the ledger UTF-8. Raises `SourceNotReady` for a name that isn't."""
    try:
        "\n".join(paths).encode()
    except UnicodeEncodeError as error:
        odd = [ascii(path) for path in paths if not path.isprintable()]
        raise SourceNotReady(f"file names are not UTF-8: {', '.join(odd[:_NAMED])}; rename them") from error
