"""`python -m stack.lake_runs <day>…`: one epoch a day by `spark_apps.flights_lake`; `… recover`: finish the decided.

A process of its own, since the demo kills it. Where everything is, and the logins, stand in its environment.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from lockstep import run_epoch
from lockstep.run import recover
from spark_apps.flights_lake import pipeline


def main(asked: Sequence[str]) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    connections = {"warehouse": os.environ["LOCKSTEP_WAREHOUSE"], "catalog": os.environ["LOCKSTEP_CATALOG"]}
    ledger, staging = os.environ["LOCKSTEP_LEDGER"], os.environ["LOCKSTEP_STAGING"]
    if asked == ["recover"]:
        report = recover(pipeline, ledger=ledger, staging=staging, connections=connections)
        sys.exit("\n".join(report.problems) or (0 if report.complete else "somebody else is at work"))
    session = _session(os.environ["LOCKSTEP_SPARK"])
    for text in asked:
        start = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
        found = run_epoch(
            pipeline,
            interval=(start, start + timedelta(days=1)),
            ledger=ledger,
            staging=staging,
            spark=session,
            connections=connections,
            run_id=text,
        )
        print(f"{text} {found.rows['flights']}", flush=True)


def _session(url: str) -> Any:
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(url).create()


if __name__ == "__main__":
    main(sys.argv[1:])
