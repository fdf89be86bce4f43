"""Records to standard output, one line each: for a first look, and for programs that read the log of a task."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from lockstep.errors import SinkUnavailable
from lockstep.sinks.append_only.records import Origin, Record, chunks, lines_of
from lockstep.sinks.append_only.sink import AppendOnlySink, reason_of

_RECORDS, _BYTES = 1000, 1 << 16  # a write


class StdoutSink(AppendOnlySink):
    """Rows as JSON lines on this process's standard output. At least once, as far as what reads it keeps the lines.

    A delivery starts with an empty line, so that a line which a killed process left unfinished doesn't swallow the
    first record. A line that doesn't parse is such a rest: its record comes again.
    """

    def writes_to(self) -> frozenset[str]:
        return frozenset({"standard output"})

    def deliver(self, records: Iterator[Record], origin: Origin) -> None:
        started = False
        for chunk in chunks(records, _RECORDS, _BYTES):
            self._write(lines_of(chunk) if started else b"\n" + lines_of(chunk))
            started = True

    def _write(self, data: bytes) -> None:
        try:
            sys.stdout.flush()
            if binary := getattr(sys.stdout, "buffer", None):
                binary.write(data)
                binary.flush()
            else:  # a task's log
                sys.stdout.write(data.decode())
                sys.stdout.flush()
        except (OSError, UnicodeError) as error:
            raise SinkUnavailable(f"sink {self.name}: standard output: {reason_of(error)}") from error
