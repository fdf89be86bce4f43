"""A file as a plan froze it: path, size, time of change, and for writers that cheat its sha256."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lockstep.epoch import Claim, Json
from lockstep.errors import SourceChanged, SourceNotReady


@dataclass(frozen=True, order=True)
class FrozenFile:
    """`mtime_ns`: nanoseconds since 1970, as the file system gives them."""

    mtime_ns: int
    path: str
    size: int
    sha256: str | None = None

    @classmethod
    def of(cls, path: str, *, hashed: bool = False) -> FrozenFile:
        """The file as it is now. Raises `SourceNotReady` if it went away since it was listed."""
        try:
            found = Path(path).stat()
            return cls(found.st_mtime_ns, path, found.st_size, _sha256(path) if hashed else None)
        except OSError as error:
            raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error

    @classmethod
    def from_json(cls, value: Json) -> FrozenFile:
        return cls(value["mtime_ns"], value["path"], value["size"], value.get("sha256"))

    def to_json(self) -> Json:
        fact = {"path": self.path, "size": self.size, "mtime_ns": self.mtime_ns}
        return fact if self.sha256 is None else {**fact, "sha256": self.sha256}

    def claim(self) -> Claim:
        return Claim(self.path, size=self.size, mtime_ns=self.mtime_ns, digest=self.sha256)

    def check(self) -> None:
        """Raise `SourceChanged`, saying what changed, unless the file is what it was."""
        try:
            now = FrozenFile.of(self.path, hashed=self.sha256 is not None)
        except SourceNotReady as error:
            raise SourceChanged(f"{error}; the plan froze it: bring it back as it was, or `lockstep replan`") from error
        if changes := self.differences(now):
            raise SourceChanged(
                f"input file {self.path} changed after the plan froze it: {changes}; "
                "bring it back as it was, or `lockstep replan`"
            )

    def differences(self, now: FrozenFile) -> str:
        """What isn't as it was, in words; empty if everything is. A sha256 counts where both have one."""
        both_hashed = self.sha256 is not None and now.sha256 is not None
        return ", ".join(
            f"{name} was {then}, is {found}"
            for name, then, found in (
                ("size", self.size, now.size),
                ("time of change", _time(self.mtime_ns), _time(now.mtime_ns)),
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
