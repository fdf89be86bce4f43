"""Which stacks run on this machine: a small file for each in the user's state folder, so that any folder can ask."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lockstep.errors import NotConfigured

ENVIRONMENT = "env.json"  #: in the home of a stack, while it runs: what `lockstep env` prints


def remember(home: Path) -> None:
    """A stack runs there from now on."""
    _folder().mkdir(parents=True, exist_ok=True)
    _entry(home).write_text(str(home))


def forget(home: Path) -> None:
    """It doesn't any more."""
    _entry(home).unlink(missing_ok=True)


def find(home: Path | None) -> Path:
    """The home of the running stack: `home` if it is given, else of the checkout that this is, else the only one that
    runs. What is found, and not given, is this user's own: a shell takes its word. Raises `NotConfigured`."""
    if home is not None:
        return _required(home)
    here = next((found for found in _around(Path.cwd()) if _runs(found) and _is_own(found)), None)
    others = [here] if here else [found for found in _known() if _runs(found) and _is_own(found)]
    if not others:
        raise NotConfigured("no stack runs: start one with `make up` in a checkout of Lockstep")
    if len(others) > 1:
        choices = "; ".join(f"LOCKSTEP_HOME={found}" for found in others)
        raise NotConfigured(f"{len(others)} stacks run, say which: {choices}")
    return others[0]


def _required(home: Path) -> Path:
    if not _runs(home):
        raise NotConfigured(f"no stack runs from {home}: start it with `make up`, or set LOCKSTEP_HOME to another one")
    return home


def _around(folder: Path) -> list[Path]:
    return [parent / ".lockstep" for parent in (folder, *folder.parents)]


def _known() -> list[Path]:
    return sorted(Path(entry.read_text()) for entry in _folder().glob("*.home"))


def _runs(home: Path) -> bool:
    return (home / ENVIRONMENT).exists()


def _is_own(home: Path) -> bool:
    return (home / ENVIRONMENT).stat().st_uid == os.geteuid()


def _entry(home: Path) -> Path:
    return _folder() / f"{hashlib.sha256(str(home).encode()).hexdigest()[:16]}.home"


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "lockstep")
