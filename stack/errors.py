"""What can keep the stack from starting; each message is one line that says what to do."""

from __future__ import annotations


class StackError(Exception):
    """The stack can't do what it was asked to."""


class PortInUse(StackError):
    """Another process listens where the stack wants to."""

    def __init__(self, port: int, service: str = "") -> None:
        self.port = port
        remedy = f"free it, or set LOCKSTEP_PORT_{service.upper()} to another" if service else "free it"
        super().__init__(f"port {port} of 127.0.0.1{f', wanted by {service},' if service else ''} is in use: {remedy}")


class AlreadyAtWork(StackError):
    """Another `up` or `down` of the same home is running."""


class JavaMissing(StackError):
    """No Java, or one that Spark can't run on."""
