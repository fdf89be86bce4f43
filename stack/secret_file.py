"""Files that nobody else can read, at any moment."""

from __future__ import annotations

from pathlib import Path


def write_secret(path: Path, text: str) -> None:
    """Replace `path` whole by a file of mode 0600."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.rename(path)
