"""A system user for servers that refuse to run as root; anybody else runs them as themselves."""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stack.errors import StackError


@dataclass(frozen=True)
class SystemUser:
    """`name` is made when it is first needed; `server` stands in messages."""

    name: str
    server: str

    def for_process(self) -> dict[str, Any]:
        """What subprocess takes to run a program as this user; nothing where we aren't root."""
        if os.geteuid() != 0:
            return {}
        owner = self._ensure()
        return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "umask": 0o077}

    def give(self, path: Path) -> None:
        """Make this user the owner of `path`."""
        if os.geteuid() == 0:
            owner = self._ensure()
            os.chown(path, owner.pw_uid, owner.pw_gid)

    def reaches(self, path: Path) -> bool:
        """Whether this user can enter, or run, `path`."""
        test = subprocess.run(["test", "-x", str(path)], cwd="/", check=False, **self.for_process())
        return test.returncode == 0

    def _ensure(self) -> pwd.struct_passwd:
        with suppress(KeyError):
            return pwd.getpwnam(self.name)
        with Path("/etc/passwd").open() as database:  # two useradds at once can each choose a number for the name
            fcntl.flock(database, fcntl.LOCK_EX)
            return self._add()

    def _add(self) -> pwd.struct_passwd:
        with suppress(KeyError):
            return pwd.getpwnam(self.name)
        options = ["--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin"]
        added = subprocess.run(["useradd", *options, self.name], check=False, capture_output=True, text=True)
        try:
            return pwd.getpwnam(self.name)
        except KeyError:
            raise StackError(
                f"{self.server} can't run as root, and useradd could not make the user {self.name}: "
                f"{added.stderr.strip()}"
            ) from None
