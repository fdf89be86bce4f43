"""A file as a plan froze it: path, size, time of change or ETag, and for writers that cheat its sha256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from lockstep.epoch import Claim, Json
from lockstep.errors import InvalidPipeline, SourceChanged, SourceNotReady

_ETAG = "etag:"  #: before the ETag in a claim's digest


@dataclass(frozen=True, order=True)
class FrozenFile:
    """`mtime_ns`: nanoseconds since 1970, as the file system gives them. `known_as`: by which name it is claimed, if
    that isn't its path. `inode`: device and number, `links`: names of the file, when it was looked at. `etag`: by which
    an object store tells contents apart; the same bytes put again may have the same one, and another time."""

    mtime_ns: int
    path: str
    size: int
    sha256: str | None = None
    known_as: str | None = field(default=None, compare=False)
    inode: tuple[int, int] | None = field(default=None, compare=False)
    links: int = field(default=1, compare=False)
    etag: str | None = None

    @classmethod
    def of(cls, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        """A file of a mounted file system as it is now. `name`: by which it is claimed. Raises `SourceNotReady` if it
        is gone."""
        try:
            found = Path(path).stat()
            sha256 = _sha256(path) if hashed else None
            inode = (found.st_dev, found.st_ino) if found.st_ino else None  # some file systems number nothing
            known_as = name if name != path else None
            return cls(found.st_mtime_ns, path, found.st_size, sha256, known_as, inode, found.st_nlink)
        except OSError as error:
            raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error

    @classmethod
    def from_json(cls, value: Json) -> FrozenFile:
        facts = value["mtime_ns"], value["path"], value["size"]
        return cls(*facts, value.get("sha256"), value.get("known_as"), etag=value.get("etag"))

    @classmethod
    def from_claim(cls, claim: Claim) -> FrozenFile | None:
        """A whole file, as far as its claim tells; None for another claim, and one of a version that told nothing."""
        if claim.ends is not None or claim.size is None or claim.mtime_ns is None:
            return None
        digest = claim.digest or ""
        etag = digest.removeprefix(_ETAG) if digest.startswith(_ETAG) else None
        return cls(claim.mtime_ns, claim.path, claim.size, etag=etag)

    def to_json(self) -> Json:
        fact = {"path": self.path, "size": self.size, "mtime_ns": self.mtime_ns}
        more = {"etag": self.etag, "sha256": self.sha256, "known_as": self.known_as}
        return fact | {name: value for name, value in more.items() if value is not None}

    @property
    def name(self) -> str:
        """By which the file is claimed."""
        return self.known_as or self.path

    def claim(self) -> Claim:
        digest = f"{_ETAG}{self.etag}" if self.etag is not None else self.sha256
        return Claim(self.name, size=self.size, mtime_ns=self.mtime_ns, digest=digest)

    def require_same(self, now: FrozenFile) -> None:
        """Raise `SourceChanged`, saying what changed, unless the file is what it was."""
        if changes := self.differences(now):
            raise SourceChanged(
                f"input file {self.path} changed after the plan froze it: {changes}; "
                "bring it back as it was, or `lockstep replan`"
            )

    def differences(self, now: FrozenFile) -> str:
        """What isn't as it was, in words; empty if everything is. An ETag, or a sha256, counts where both have one, and
        the time of change where they have no ETag."""
        both_tagged, both_hashed = None not in (self.etag, now.etag), None not in (self.sha256, now.sha256)
        changed = ("time of change", _time(self.mtime_ns), _time(now.mtime_ns))
        return ", ".join(
            f"{name} was {then}, is {found}"
            for name, then, found in (
                ("size", self.size, now.size),
                ("ETag", self.etag, now.etag) if both_tagged else changed,
                *([("sha256", self.sha256, now.sha256)] if both_hashed else []),
            )
            if then != found
        )


def _time(mtime_ns: int) -> str:
    seconds, rest = divmod(mtime_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d}Z"


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


WINDOW = 4096  #: bytes at either end that the digest knows
HEAD = 256  #: bytes by which a file is known again; a shorter one isn't
_BLOCK = 1 << 16
#: By these endings Spark, and everybody else, knows a compressed file: it has no lines that could be appended to.
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".deflate", ".zip")

Claims = Callable[[Iterable[str]], Mapping[str, Claim]]


@dataclass(frozen=True)
class FileRange:
    """The bytes [starts, ends) of a file; the last of them ends a line. `size` and `mtime_ns`: the file's, then."""

    path: str
    starts: int
    ends: int
    digest: str
    size: int
    mtime_ns: int
    sha256: str | None = None
    head: str | None = None  #: sha256 of the file's first HEAD bytes, when it has them for the first time
    known_as: str | None = None  #: by which name it is claimed, if that isn't its path

    @classmethod
    def from_json(cls, value: Json) -> FileRange:
        path, digest, facts = value["path"], value["digest"], (value["size"], value["mtime_ns"])
        others = (value.get("sha256"), value.get("head"), value.get("known_as"))
        return cls(path, value["from"], value["to"], digest, *facts, *others)

    def to_json(self) -> Json:
        facts = {"path": self.path, "from": self.starts, "to": self.ends, "digest": self.digest}
        facts |= {"size": self.size, "mtime_ns": self.mtime_ns}
        facts |= {"sha256": self.sha256, "head": self.head, "known_as": self.known_as}
        return {name: fact for name, fact in facts.items() if fact is not None}

    @property
    def name(self) -> str:
        """By which the file is claimed."""
        return self.known_as or self.path

    def claim(self) -> Claim:
        return Claim(self.name, self.starts, self.ends, self.size, self.mtime_ns, self.digest, self.head)

    def check(self) -> None:
        """Raise `SourceChanged` unless the range can still be read as it was; what came behind it doesn't matter."""
        try:
            file = _opened(self.path)
        except SourceNotReady as error:
            raise SourceChanged(f"{error}; the plan froze it: bring it back as it was, or `lockstep replan`") from error
        with file:
            _require_same(file, self.claim(), self.path)
            if self.sha256 is not None and self.sha256 != _sha256_of_range(file, self.starts, self.ends):
                raise SourceChanged(f"{self.path}: bytes {self.starts} to {self.ends} are others than were planned")


def grown(files: Iterable[Mapping[str, str]], claims: Claims) -> list[tuple[FrozenFile, Claim | None]]:
    """Those of `files` (in chunks, path by name) that aren't as their last claim left them, longest unchanged first.

    Each once, however often, and in however many chunks, it is listed.
    """
    found: dict[str, tuple[FrozenFile, Claim | None]] = {}
    for chunk in files:
        taken = claims(chunk)
        for name, path in chunk.items():
            claim = taken.get(name)
            now = FrozenFile.of(path, name=claim.path if claim else name)
            if claim is None or (claim.ends is not None and _may_have_news(claim, now)):
                found[name] = (now, claim)
    return sorted(found.values(), key=lambda pair: pair[0])


def next_range(now: FrozenFile, claim: Claim | None, limit: int | None, *, hashed: bool = False) -> FileRange | None:
    """The complete lines behind `claim`, of about `limit` bytes at most, but at least one line; None if there is none.

    Raises `SourceChanged` if the file isn't the one that was claimed, `SourceNotReady` if it went away.
    """
    if now.path.endswith(_COMPRESSED):
        raise InvalidPipeline(f"{now.path}: a compressed file doesn't grow by lines; leave grow away, or the file")
    starts = (claim.ends or 0) if claim else 0
    with _opened(now.path) as file:
        if claim is not None:
            _require_same(file, claim, now.path)
        ends = _end_of_lines(file, starts, now.size, limit)
        if ends is None:
            return None
        sha256 = _sha256_of_range(file, starts, ends) if hashed else None
        known = claim is not None and (claim.size or 0) >= HEAD
        head = _digest(file, HEAD) if now.size >= HEAD and not known else None
        digest, known_as = _digest(file, ends), now.known_as
        return FileRange(now.path, starts, ends, digest, now.size, now.mtime_ns, sha256, head, known_as)


def require_unknown(found: FileRange, claims: Iterable[Claim], *, header: bool) -> None:
    """Raise `SourceChanged` if the file of this range is one of those that were claimed, moved or copied.

    To read it under its new name would double what was read under the old one. `header`: the first line is no record,
    so where only that was read there is nothing to double, and files with the same header are files apart.
    """
    with _opened(found.path) as file:
        no_record = _first_line(file) if header else 0
        for claim in claims:
            upto = claim.ends or 0
            if upto <= no_record:
                continue
            if claim.path != found.name and upto <= found.size and _digest(file, upto) == claim.digest:
                raise SourceChanged(
                    f"growing file {found.path} is {claim.path} under another name, of which {upto} bytes were taken; "
                    "they are not read twice. Move it away, or give it its old name back to have the rest read"
                )


def require_apart(ranges: Iterable[FileRange]) -> None:
    """Raise `SourceChanged` if two of these ranges are of one file under two names, by a link or as a copy.

    What has one line only, as a CSV file that has just its header, is nobody's copy.
    """
    files: dict[tuple[int, int], FileRange] = {}
    alike: dict[str | None, list[FileRange]] = {}
    for found in sorted(ranges, key=lambda one: one.ends):  # of a copy, the shorter one first
        with _opened(found.path) as file:
            facts = os.fstat(file.fileno())
            same = [files.setdefault((facts.st_dev, facts.st_ino), found)]
            if found.head is not None:
                begins, line = _digest(file, WINDOW), _first_line(file)
                known = [*alike.get(found.head, ()), *alike.get(begins, ())]
                same += [one for one in known if one.ends > line and _digest(file, one.ends) == one.digest]
                alike.setdefault(begins if found.ends >= WINDOW else found.head, []).append(found)
        if other := next((one for one in same if one is not found), None):
            raise SourceChanged(
                f"growing files {other.path} and {found.path} are one file under two names; it is not read twice. "
                "Move one of them away, or have the source's path mean only one"
            )


def _may_have_news(claim: Claim, now: FrozenFile) -> bool:
    same = (claim.size, claim.mtime_ns) == (now.size, now.mtime_ns)
    return not same or claim.ends != now.size


def _opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise SourceNotReady(f"input file {path} is gone") from error
    except OSError as error:
        raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error


def _require_same(file: BinaryIO, claim: Claim, path: str) -> None:
    """The file still begins, and before the claim's end reads, as it did."""
    upto, size = claim.ends or 0, os.fstat(file.fileno()).st_size
    if size < upto:
        found = f"has {size} bytes only: it was truncated or replaced"
    elif _digest(file, upto) != claim.digest:
        found = "begins, or reads before that, with other bytes: it was replaced or rewritten"
    else:
        return
    raise SourceChanged(
        f"growing file {path} was taken up to byte {upto} and now {found}; nothing of it is read again. Move it "
        "away to go on without it, or give it a name that no file had before to have it read from its start"
    )


def _digest(file: BinaryIO, upto: int) -> str:
    """sha256 of the first WINDOW bytes and of the WINDOW bytes before `upto`, nothing behind it."""
    found = hashlib.sha256()
    for start in (0, max(0, upto - WINDOW)):
        file.seek(start)
        found.update(file.read(min(WINDOW, upto - start)))
    return found.hexdigest()


def _first_line(file: BinaryIO) -> int:
    file.seek(0)
    return len(file.readline(_BLOCK))


def _sha256_of_range(file: BinaryIO, starts: int, ends: int) -> str:
    found = hashlib.sha256()
    file.seek(starts)
    for start in range(starts, ends, _BLOCK):
        found.update(file.read(min(_BLOCK, ends - start)))
    return found.hexdigest()


def _end_of_lines(file: BinaryIO, starts: int, size: int, limit: int | None) -> int | None:
    """Behind the last newline of [starts, size), or of its first `limit` bytes if there is one in them."""
    upto = size if limit is None else min(size, starts + limit)
    for start, block in _backwards(file, starts, upto):
        if (place := block.rfind(b"\n")) >= 0:
            return start + place + 1
    file.seek(upto)
    for start in range(upto, size, _BLOCK):  # a line longer than the limit
        block = file.read(min(_BLOCK, size - start))
        if (place := block.find(b"\n")) >= 0:
            return start + place + 1
    return None


def _backwards(file: BinaryIO, starts: int, upto: int) -> Iterator[tuple[int, bytes]]:
    while upto > starts:
        start = max(starts, upto - _BLOCK)
        file.seek(start)
        yield start, file.read(upto - start)
        upto = start
