"""Delta's connector for Spark, by which tests read what DeltaSink wrote; Lockstep itself doesn't need it."""

from __future__ import annotations

import sys

from stack.errors import StackError
from stack.jars import Jars

VERSION = "4.4.0"
#: Spark has the rest of what they need
_NAMES = ("delta-spark_4.2_2.13", "delta-storage", "delta-kernel-api", "delta-kernel-defaults")
DELTA_SPARK = Jars("delta", alone=tuple(f"io.delta:{name}:{VERSION}" for name in _NAMES), target="delta")


def fetch() -> None:
    """Bring the jars from Maven Central. Raises `StackError`."""
    print(f"{DELTA_SPARK.name}: {'here already' if DELTA_SPARK.present else 'fetching …'}", flush=True)
    DELTA_SPARK.fetch()


if __name__ == "__main__":
    try:
        fetch()
    except StackError as error:
        sys.exit(str(error))
