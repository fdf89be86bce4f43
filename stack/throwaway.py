"""Servers that are there for as long as a block of code lasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class ThrowawayServer(ABC):
    """A server that can be made and thrown away, with all that it has."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def remove(self) -> None:
        """Stop it, whether it runs or not, and delete its data."""

    @contextmanager
    def for_a_while(self) -> Iterator[Self]:
        """Started now; stopped, with its data, at the end."""
        try:
            self.start()
            yield self
        finally:
            self.remove()
