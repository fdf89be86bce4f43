"""A file as a plan froze it: path, size, time of change or ETag, and for writers that cheat its sha256."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lockstep.epoch import Claim, Json
from lockstep.errors import SourceChanged, SourceNotReady

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
