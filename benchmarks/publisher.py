"""One publishing process, for its peak memory: `python -m benchmarks.publisher DSN FOLDER WAL HASH PROTOCOL`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from benchmarks.paths import own_peak, postgres_sink, publish_from_wal
from lockstep.sinks.tables.sink import ProtocolName

if __name__ == "__main__":
    warehouse, folder, wal, manifest_hash, protocol = sys.argv[1:]
    sink = postgres_sink("memory_rows", cast(ProtocolName, protocol))
    publish_from_wal(warehouse, Path(folder), (wal, manifest_hash), sink)
    print(own_peak())
