"""Records to standard output, one line each: for a first look, and for programs that read the log of a task."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from lockstep.errors import SinkUnavailable
from lockstep.sinks.append_only import AppendOnlySink, reason_of
from lockstep.sinks.append_records import Record
from lockstep.sinks.base import SinkEpoch


class StdoutSink(AppendOnlySink):
    """Rows as JSON lines on this process's standard output. At least once, as far as what reads it keeps the lines."""

    def deliver(self, records: Iterator[Record], epoch: SinkEpoch) -> None:
        try:
            for record in records:
                sys.stdout.write(record.line.decode() + "\n")
            sys.stdout.flush()
        except OSError as error:
            raise SinkUnavailable(f"sink {self.name}: standard output: {reason_of(error)}") from error
