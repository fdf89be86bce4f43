"""What is new in a watched folder. The ledger is asked for names by chunks: no list of all files is made or sent."""

from __future__ import annotations

import heapq
import logging
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from lockstep.epoch import Claim
from lockstep.errors import SourceNotReady
from lockstep.observability.redaction import list_some
from lockstep.sources.base import SourceContext
from lockstep.sources.files._changes import find_changed_since, require_no_rest
from lockstep.sources.files._frozen_file import FrozenFile
from lockstep.sources.files._growth import FrozenRange, grown, next_range, require_apart, require_unknown
from lockstep.sources.files._paths import each_file, require_readable
from lockstep.sources.files.places import Places, require_one_name

CHUNK = 10_000
_NAMED = 10  # changed files in one line of the log
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WatchedFolder:
    """A folder or pattern, and about how much of it an epoch takes."""

    where: str
    places: Places
    max_files: int | None = None
    max_bytes: int | None = None
    hash: bool = False
    header: bool = False  #: the first line of a file that grows is no record

    def new_files(self, context: SourceContext) -> list[FrozenFile]:
        """The oldest files that nobody owns, within the caps. Says in the log which consumed ones have changed.

        Raises `SourceChanged` for a file that was read as a growing one, and not to its end, and for one of a folder
        that has moved; `SourceRefused` for one with two names, or a name that Spark can't read.
        """
        new: dict[str, str] = {}
        compared: set[str] = set()
        for number, chunk in enumerate(self._chunks(), start=1):
            taken = self._sift(context, chunk, new)
            if random.randrange(number) == 0:  # noqa: S311 - one chunk of all, each as likely as the others
                compared = taken
        self._compare(context, compared)
        self.places.require_not_moved(context, new)
        oldest = (self.places.files.facts(path, name) for name, path in new.items())
        files = sorted(oldest) if self.max_files is None else heapq.nsmallest(self.max_files, oldest)
        capped = self._capped(files)
        require_one_name(capped, self.places, self.where)
        return [self._checked(file) for file in capped]

    def _sift(self, context: SourceContext, paths: list[str], new: dict[str, str]) -> set[str]:
        """Put those that nobody owns into `new`, path by name, each once; the names that somebody owns."""
        names = {path: self.places.name(path) for path in paths}
        taken = self._claimed(context, names)
        left = {path: self.places.true_name(path) for path, name in names.items() if name not in taken}
        taken |= self._claimed(context, {path: name for path, name in left.items() if name != names[path]})
        for path, name in left.items():
            if name not in taken:
                new[name] = path if path == name else min(path, new.get(name, path))
        return taken

    def _claimed(self, context: SourceContext, names: Mapping[str, str]) -> set[str]:
        """Those of the files, name by path, that somebody owns, as they are listed or by another of their names."""
        asked = dict(names)
        for name in names.values():
            asked[name] = name
            if self.places.same:
                asked |= dict.fromkeys(self.places.former(name), name)
        return {asked[one] for one in context.claimed(list(asked))} if asked else set()

    def new_lines(self, context: SourceContext) -> list[FrozenRange]:
        """Of the files that have grown the complete lines behind their claims, within the caps.

        Raises `SourceChanged` for a file that isn't the one that was claimed, has two names, or has moved.
        """
        ranges: list[FrozenRange] = []
        files: list[FrozenFile] = []
        room = self.max_bytes
        for now, claim in self._grown(context):
            if room is not None and room <= 0:
                break
            found = next_range(now, claim, room, hashed=self.hash)
            if found is None:
                continue
            if ranges and room is not None and found.ends - found.starts > room:
                break
            ranges.append(found)
            files.append(now)
            room = None if room is None else room - (found.ends - found.starts)
            if len(ranges) == self.max_files:
                break
        require_apart(ranges)
        require_one_name(files, self.places, self.where)
        self._require_unknown(context, ranges)
        return ranges

    def _require_unknown(self, context: SourceContext, ranges: list[FrozenRange]) -> None:
        """Raises `SourceChanged` for a file that was claimed under another name."""
        new = [found for found in ranges if found.head is not None and found.starts == 0]
        alike = context.claimed_by_head({found.head for found in new if found.head}) if new else set()
        claims = list(context.claims(alike).values()) if alike else []
        for found in new if claims else ():
            require_unknown(found, claims, header=self.header)

    def _grown(self, context: SourceContext) -> list[tuple[FrozenFile, Claim | None]]:
        def claims(names: Iterable[str]) -> Mapping[str, Claim]:
            asked = {other: name for name in names for other in (name, *self.places.former(name))}
            found = context.claims(list(asked))
            return {asked[other]: claim for other, claim in sorted(found.items(), key=lambda pair: pair[1].ends or 0)}

        named = ({self.places.true_name(path): path for path in chunk} for chunk in self._chunks())
        files = grown(named, claims)
        self.places.require_not_moved(context, {now.name: now.path for now, claim in files if claim is None})
        return files

    def _checked(self, file: FrozenFile) -> FrozenFile:
        require_readable(file.path)
        return self.places.files.facts_now(file.path, hashed=True, name=file.name) if self.hash else file

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
        if changed := find_changed_since(self.places.files, claims):
            _log.warning(
                "source %s: these files changed after an epoch had taken them, and are not read again: %s",
                context.source,
                list_some(changed, _NAMED),
            )

    def _chunks(self) -> Iterator[list[str]]:
        files = each_file(self.places.files, self.where)
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
