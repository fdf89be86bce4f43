"""Development stacks that run on this machine: a file for each in the user's state folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lockstep.errors import NotConfigured

ENVIRONMENT = "env.json"  #: in the home of a running stack: what `lockstep env` prints


def remember(home: Path) -> None:
    """Record that a stack runs from `home`."""
    _folder().mkdir(parents=True, exist_ok=True)
    _entry(home).write_text(str(home))


def forget(home: Path) -> None:
    """Record that the stack from `home` has stopped."""
    _entry(home).unlink(missing_ok=True)


def find(home: Path | None) -> Path:
    """The home of the running stack: `home` if given, else the one of this checkout, else the only one that runs. One
    that isn't given must belong to this user, as a shell evaluates its content. Raises `NotConfigured`."""
    if home is not None:
        if not _runs(home):
            raise NotConfigured(
                f"no stack runs from {home}: start it with `make up`, or set LOCKSTEP_HOME to another one"
            )
        return home
    around = (folder / ".lockstep" for folder in (Path.cwd(), *Path.cwd().parents))
    here = next((folder for folder in around if _runs(folder) and _is_own(folder)), None)
    if here is not None:
        return here
    registered = sorted(Path(entry.read_text()) for entry in _folder().glob("*.home"))
    running = [folder for folder in registered if _runs(folder) and _is_own(folder)]
    if not running:
        raise NotConfigured("no stack runs: start one with `make up` in a checkout of Lockstep")
    if len(running) > 1:
        choices = "; ".join(f"LOCKSTEP_HOME={folder}" for folder in running)
        raise NotConfigured(f"{len(running)} stacks run, choose one: {choices}")
    return running[0]


def _runs(home: Path) -> bool:
    return (home / ENVIRONMENT).exists()


def _is_own(home: Path) -> bool:
    return (home / ENVIRONMENT).stat().st_uid == os.geteuid()


def _entry(home: Path) -> Path:
    return _folder() / f"{hashlib.sha256(str(home).encode()).hexdigest()[:16]}.home"


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "lockstep")
