"""Records to standard output, one line each: for a first look, and for programs that read the log of a task."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial

from lockstep.errors import SinkUnavailable
from lockstep.sinks.append_only.open_sink import OpenRecordSink, reason_of
from lockstep.sinks.append_only.records import Origin, Records
from lockstep.sinks.append_only.sink import AppendOnlySink
from lockstep.sinks.values import SinkContext

_RECORDS, _BYTES = 1000, 1 << 16  # a write


@dataclass(frozen=True, kw_only=True)
class StdoutSink(AppendOnlySink):
    """Rows as JSON lines on this process's standard output. At least once or at most once, as far as what reads it
    keeps the lines.

    A delivery starts with an empty line, so that a line which a killed process left unfinished doesn't swallow the
    first record. A line that doesn't parse is such a rest: at least once its record comes again.
    """

    def writes_to(self) -> frozenset[str]:
        return frozenset({"standard output"})

    def open(self, context: SinkContext) -> OpenRecordSink:
        return OpenRecordSink(self, context, partial(_print_records, self.name))


def _print_records(sink: str, records: Records, origin: Origin) -> None:
    started = False
    for chunk in records.chunks(_RECORDS, _BYTES):
        try:
            _write(chunk.body if started else b"\n" + chunk.body)
        except (OSError, UnicodeError) as error:
            raise SinkUnavailable(f"sink {sink}: standard output: {reason_of(error)}") from error
        started = True


def _write(data: bytes) -> None:
    sys.stdout.flush()
    if binary := getattr(sys.stdout, "buffer", None):
        binary.write(data)
        binary.flush()
    else:  # a task's log
        sys.stdout.write(data.decode())
        sys.stdout.flush()
