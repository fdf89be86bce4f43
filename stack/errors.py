"""What can keep the stack from starting; each message is one line that says what to do."""

from __future__ import annotations


class StackError(Exception):
    """The stack can't do what it was asked to."""


class PortInUse(StackError):
    """Another process listens where the stack wants to."""

    def __init__(self, port: int, service: str = "") -> None:
        self.port = port
        name = f"{service}: " if service else ""
        super().__init__(f"{name}port {port} of 127.0.0.1 is in use: free it, or choose another by LOCKSTEP_PORT_*")


class JavaMissing(StackError):
    """No Java, or one that Spark can't run on."""
