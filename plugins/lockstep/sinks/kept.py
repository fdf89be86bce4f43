"""Sinks that stay open from one epoch to the next: to connect and to look around costs what a small epoch does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext


class SinkPool:
    """What one thread has opened. Only sinks that say `serves_many` stay open, and none that has raised."""

    def __init__(self) -> None:
        self._idle: dict[str, OpenSink] = {}

    @contextmanager
    def opened(self, sink: Sink, context: SinkContext) -> Iterator[OpenSink]:
        """As `Sink.opened`; a description alike finds what was left open."""
        key = json.dumps([sink.spec()["type"], sink.arguments()], sort_keys=True)
        found = self._idle.pop(key, None) or sink.open(context)
        try:
            yield found
        except BaseException:
            found.close()
            raise
        if found.serves_many and key not in self._idle:
            self._idle[key] = found
        else:
            found.close()

    def close(self) -> None:
        """Close whatever is open."""
        while self._idle:
            self._idle.popitem()[1].close()
