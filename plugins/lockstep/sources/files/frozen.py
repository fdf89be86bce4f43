"""Files, and ranges of growing files, as a plan freezes them.

An epoch reads the complete lines of a growing file after those of earlier epochs. They are frozen as a range of bytes
with a digest of the file's first bytes and of the bytes before the range's end, which differs once the file is
truncated, rotated or replaced.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from lockstep.epoch import Claim, Json
from lockstep.errors import InvalidPipeline, SourceChanged, SourceNotReady

_ETAG = "etag:"  #: before the ETag in a claim's digest

WINDOW = 4096  #: bytes at either end that the digest covers
HEAD = 256  #: bytes by which a renamed file is recognized, if it has as many
_BLOCK = 1 << 16
#: Extensions of compressed files, to which no lines can be appended.
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".deflate", ".zip")
Claims = Callable[[Iterable[str]], Mapping[str, Claim]]


@dataclass(frozen=True, order=True)
class FrozenFile:
    """A file as it was when its epoch was planned.

    `mtime_ns`: nanoseconds since 1970, as the file system reports them. `known_as`: the name by which it is claimed, if
    that isn't its path. `inode`: device and inode number, `links`: number of names. `etag`: an object store's version
    tag; equal contents may get the same tag with another time. `sha256` detects changes that keep size and time.
    """

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
        """Return the current state of a file on a mounted file system. `name`: by which it is claimed.

        Raises `SourceNotReady` if it can't be read.
        """
        try:
            status = Path(path).stat()
            sha256 = _sha256(path) if hashed else None
            inode = (status.st_dev, status.st_ino) if status.st_ino else None  # some file systems have no inodes
            known_as = name if name != path else None
            return cls(status.st_mtime_ns, path, status.st_size, sha256, known_as, inode, status.st_nlink)
        except OSError as error:
            raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error

    @classmethod
    def from_json(cls, value: Json) -> FrozenFile:
        facts = value["mtime_ns"], value["path"], value["size"]
        return cls(*facts, value.get("sha256"), value.get("known_as"), etag=value.get("etag"))

    @classmethod
    def from_claim(cls, claim: Claim) -> FrozenFile | None:
        """Return a whole file from its claim; None for a claim on a range, or without size and time."""
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
        """The name by which the file is claimed."""
        return self.known_as or self.path

    def claim(self) -> Claim:
        digest = f"{_ETAG}{self.etag}" if self.etag is not None else self.sha256
        return Claim(self.name, size=self.size, mtime_ns=self.mtime_ns, digest=digest)

    def require_same(self, now: FrozenFile) -> None:
        """Raise `SourceChanged`, listing the differences, if the file has changed."""
        if changes := self.differences(now):
            raise SourceChanged(
                f"input file {self.path} changed after the plan froze it: {changes}; "
                "bring it back as it was, or `lockstep replan`"
            )

    def differences(self, now: FrozenFile) -> str:
        """Describe how `now` differs; empty if it doesn't.

        Compares size, ETags and sha256 if both have them, and the time of change if they have no ETags.
        """
        facts: list[tuple[str, object, object]] = [("size", self.size, now.size)]
        if self.etag is not None and now.etag is not None:
            facts.append(("ETag", self.etag, now.etag))
        else:
            facts.append(("time of change", _time(self.mtime_ns), _time(now.mtime_ns)))
        if self.sha256 is not None and now.sha256 is not None:
            facts.append(("sha256", self.sha256, now.sha256))
        return ", ".join(f"{name} was {then}, is {value}" for name, then, value in facts if then != value)


def _time(mtime_ns: int) -> str:
    seconds, rest = divmod(mtime_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d}Z"


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class FileRange:
    """The bytes [starts, ends) of a file, ending with a newline. `size`, `mtime_ns`: the file's at planning."""

    path: str
    starts: int
    ends: int
    digest: str
    size: int
    mtime_ns: int
    sha256: str | None = None
    head: str | None = None  #: sha256 of the first HEAD bytes, in the file's first range with that many
    known_as: str | None = None  #: the name by which it is claimed, if that isn't its path

    @classmethod
    def from_json(cls, value: Json) -> FileRange:
        path, digest, facts = value["path"], value["digest"], (value["size"], value["mtime_ns"])
        optional = (value.get("sha256"), value.get("head"), value.get("known_as"))
        return cls(path, value["from"], value["to"], digest, *facts, *optional)

    def to_json(self) -> Json:
        facts = {"path": self.path, "from": self.starts, "to": self.ends, "digest": self.digest}
        facts |= {"size": self.size, "mtime_ns": self.mtime_ns}
        facts |= {"sha256": self.sha256, "head": self.head, "known_as": self.known_as}
        return {name: fact for name, fact in facts.items() if fact is not None}

    @property
    def name(self) -> str:
        """The name by which the file is claimed."""
        return self.known_as or self.path

    def claim(self) -> Claim:
        return Claim(self.name, self.starts, self.ends, self.size, self.mtime_ns, self.digest, self.head)

    def check(self) -> None:
        """Raise `SourceChanged` if the range can't be read as it was; bytes after it don't matter."""
        try:
            file = _opened(self.path)
        except SourceNotReady as error:
            raise SourceChanged(f"{error}; the plan froze it: bring it back as it was, or `lockstep replan`") from error
        with file:
            _require_same(file, self.claim(), self.path)
            if self.sha256 is not None and self.sha256 != _sha256_of_range(file, self.starts, self.ends):
                raise SourceChanged(f"{self.path}: bytes {self.starts} to {self.ends} differ from the planned ones")


def grown(files: Iterable[Mapping[str, str]], claims: Claims) -> list[tuple[FrozenFile, Claim | None]]:
    """Return the files that are new or changed since their last claim, oldest modification first, each once.

    `files`: chunks of paths by name; a file may be listed repeatedly.
    """
    files_by_name: dict[str, tuple[FrozenFile, Claim | None]] = {}
    for chunk in files:
        claims_by_name = claims(chunk)
        for name, path in chunk.items():
            claim = claims_by_name.get(name)
            now = FrozenFile.of(path, name=claim.path if claim else name)
            unchanged = claim and (claim.size, claim.mtime_ns, claim.ends) == (now.size, now.mtime_ns, now.size)
            if claim is None or (claim.ends is not None and not unchanged):
                files_by_name[name] = (now, claim)
    return sorted(files_by_name.values(), key=lambda pair: pair[0])


def next_range(now: FrozenFile, claim: Claim | None, limit: int | None, *, hashed: bool = False) -> FileRange | None:
    """Return the complete lines after `claim`, about `limit` bytes but at least one line; None if there is none.

    Raises `SourceChanged` if the file isn't the claimed one, `SourceNotReady` if it can't be read.
    """
    if now.path.endswith(_COMPRESSED):
        raise InvalidPipeline(
            f"{now.path}: a compressed file doesn't grow by lines; don't set grow, or exclude the file"
        )
    starts = (claim.ends or 0) if claim else 0
    with _opened(now.path) as file:
        if claim is not None:
            _require_same(file, claim, now.path)
        ends = _end_of_lines(file, starts, now.size, limit)
        if ends is None:
            return None
        sha256 = _sha256_of_range(file, starts, ends) if hashed else None
        has_head = claim is not None and (claim.size or 0) >= HEAD
        head = _digest(file, HEAD) if now.size >= HEAD and not has_head else None
        digest, known_as = _digest(file, ends), now.known_as
        return FileRange(now.path, starts, ends, digest, now.size, now.mtime_ns, sha256, head, known_as)


def require_unknown(new_range: FileRange, claims: Iterable[Claim], *, header: bool) -> None:
    """Raise `SourceChanged` if the file of this range was claimed under another name and was moved or copied.

    Reading it under the new name would duplicate rows. `header`: the first line isn't a record, so files that share
    only their header are different files.
    """
    with _opened(new_range.path) as file:
        header_size = _first_line(file) if header else 0
        for claim in claims:
            claimed_bytes = claim.ends or 0
            if claimed_bytes <= header_size:
                continue
            if (
                claim.path != new_range.name
                and claimed_bytes <= new_range.size
                and _digest(file, claimed_bytes) == claim.digest
            ):
                raise SourceChanged(
                    f"growing file {new_range.path} is {claim.path} under another name, of which {claimed_bytes} bytes "
                    "were read; they are not read twice. Move it away, or give it its old name back to have the rest "
                    "read"
                )


def require_apart(ranges: Iterable[FileRange]) -> None:
    """Raise `SourceChanged` if two ranges belong to one file under two names, by a link or as a copy.

    A file with a single line, such as a CSV header, isn't considered a copy.
    """
    files: dict[tuple[int, int], FileRange] = {}
    ranges_by_head: dict[str | None, list[FileRange]] = {}
    for current in sorted(ranges, key=lambda candidate: candidate.ends):  # a copy that is shorter comes first
        with _opened(current.path) as file:
            facts = os.fstat(file.fileno())
            same = [files.setdefault((facts.st_dev, facts.st_ino), current)]
            if current.head is not None:
                start_digest, line = _digest(file, WINDOW), _first_line(file)
                candidates = [*ranges_by_head.get(current.head, ()), *ranges_by_head.get(start_digest, ())]
                same += [
                    candidate
                    for candidate in candidates
                    if candidate.ends > line and _digest(file, candidate.ends) == candidate.digest
                ]
                ranges_by_head.setdefault(start_digest if current.ends >= WINDOW else current.head, []).append(current)
        if duplicate := next((candidate for candidate in same if candidate is not current), None):
            raise SourceChanged(
                f"growing files {duplicate.path} and {current.path} are one file under two names; it is not read "
                "twice. Move one of them away, or have the source's path match only one"
            )


def _opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise SourceNotReady(f"input file {path} is gone") from error
    except OSError as error:
        raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error


def _require_same(file: BinaryIO, claim: Claim, path: str) -> None:
    """Raise `SourceChanged` if the file's first bytes, or those before the claim's end, differ from the claim."""
    upto, size = claim.ends or 0, os.fstat(file.fileno()).st_size
    if size < upto:
        problem = f"has only {size} bytes: it was truncated or replaced"
    elif _digest(file, upto) != claim.digest:
        problem = "starts, or continues before that byte, with other bytes: it was replaced or rewritten"
    else:
        return
    raise SourceChanged(
        f"growing file {path} was taken up to byte {upto} and now {problem}; nothing of it is read again. Move it "
        "away to continue without it, or give it an unused name to have it read from its start"
    )


def _digest(file: BinaryIO, upto: int) -> str:
    """Return the sha256 of the first WINDOW bytes and the WINDOW bytes before `upto`, ignoring what follows."""
    digest = hashlib.sha256()
    for start in (0, max(0, upto - WINDOW)):
        file.seek(start)
        digest.update(file.read(min(WINDOW, upto - start)))
    return digest.hexdigest()


def _first_line(file: BinaryIO) -> int:
    file.seek(0)
    return len(file.readline(_BLOCK))


def _sha256_of_range(file: BinaryIO, starts: int, ends: int) -> str:
    digest = hashlib.sha256()
    file.seek(starts)
    for start in range(starts, ends, _BLOCK):
        digest.update(file.read(min(_BLOCK, ends - start)))
    return digest.hexdigest()


def _end_of_lines(file: BinaryIO, starts: int, size: int, limit: int | None) -> int | None:
    """Return the offset after the last newline of [starts, size), within `limit` bytes if there is one."""
    end = upto = size if limit is None else min(size, starts + limit)
    while end > starts:  # backwards by blocks
        start = max(starts, end - _BLOCK)
        file.seek(start)
        if (place := file.read(end - start).rfind(b"\n")) >= 0:
            return start + place + 1
        end = start
    file.seek(upto)
    for start in range(upto, size, _BLOCK):  # a line longer than the limit
        block = file.read(min(_BLOCK, size - start))
        if (place := block.find(b"\n")) >= 0:
            return start + place + 1
    return None
