"""What an epoch shows in a folder: the content of a file sink's vote and, once it is published, of its marker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lockstep.errors import OutcomeUnknown
from lockstep.sinks.durable_file import Damaged, from_checked, to_checked
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Marker

_FORMAT = 3


@dataclass(frozen=True)
class FileFact:
    """One file of an epoch: its final name (below the target, `/` between folders), rows, size in bytes and sha256."""

    name: str
    rows: int
    bytes: int
    sha256: str

    @property
    def bucket(self) -> str:
        """Its folder below the target; empty for the target itself."""
        return self.name.rpartition("/")[0]

    @property
    def pending(self) -> str:
        """Its name while it is pending: no two files of an epoch have the same."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class Listing:
    """The files of one epoch of one sink, under the token that voted for them."""

    deployment: str
    pipeline: str
    sink: str
    epoch: int
    token: int
    manifest_hash: str
    files: tuple[FileFact, ...]
    span: str | None = None  #: the epoch's interval, by which it is found whatever its number
    #: the epochs whose places it takes, and those whose places they had taken: one marker says all
    replaced: tuple[int, ...] = ()

    @property
    def owner(self) -> SinkName:
        return SinkName(self.deployment, self.pipeline, self.sink)

    @property
    def marker(self) -> Marker:
        return Marker(self.epoch, self.token, self.manifest_hash, self.span, self.replaced)

    def to_bytes(self) -> bytes:
        return to_checked({"format": _FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Listing | None:
        """None if there is no such file. Raises `Damaged` for anything else that isn't a listing."""
        try:
            return cls.from_bytes(path.read_bytes(), path.name)
        except FileNotFoundError:
            return None

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> Listing:
        """`name`: what it is read from. Raises `Damaged`."""
        content = from_checked(data)
        if (written := content.pop("format", None)) != _FORMAT:
            raise Damaged(f"{name} is of format {written}, this Lockstep reads {_FORMAT}: upgrade it")
        files = tuple(FileFact(**fact) for fact in content.pop("files"))
        replaced = tuple(content.pop("replaced"))
        return cls(**content, files=files, replaced=replaced)


def standing(listings: Iterable[Listing]) -> list[Listing]:
    """Those that none of the others has replaced, by epoch."""
    found = sorted(listings, key=lambda one: (one.epoch, one.pipeline, one.sink))
    replaced = {(one.owner, epoch) for one in found for epoch in one.replaced}
    return [one for one in found if (one.owner, one.epoch) not in replaced]


def names_of(listings: Iterable[Listing]) -> list[str]:
    """The final names of the files that are to be seen, by epoch."""
    return [fact.name for listing in standing(listings) for fact in listing.files]


def read_marker(path: Path) -> Listing | None:
    """None if there is none. Raises `OutcomeUnknown` if it is damaged."""
    try:
        return Listing.read(path)
    except Damaged as error:
        raise OutcomeUnknown(f"the marker {path} is damaged ({error}): restore it from a copy") from error
