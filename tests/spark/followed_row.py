"""Moves one CSV row into PostgreSQL and prints the modules that it enters, by phase, in the order of their first call.

    python -m tests.spark.followed_row SPARK LEDGER WAREHOUSE FOLDER

A process of its own, so that no earlier test has filled a cache. Calls in other threads don't count: their order
varies.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import lockstep
from lockstep import Pipeline, run_epoch
from lockstep.sinks import PostgresSink
from lockstep.sources import FileSource

LIBRARY = f"{Path(lockstep.__file__).parent}/"
PHASES = ("begin", "stage", "prepare", "commit", "publish", "cleanup")
DAY = datetime(2013, 1, 1, tzinfo=UTC)


class Follower:
    """Records modules as a profile function of the interpreter."""

    def __init__(self) -> None:
        self.modules: dict[str, dict[str, None]] = {phase: {} for phase in ("run_epoch", *PHASES)}
        self._phase = "run_epoch"

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(LIBRARY) or frame.f_code.co_name.startswith("<"):
            return
        module = file.removeprefix(LIBRARY).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        phase = module.removeprefix("protocol.")
        if phase in PHASES and not self.modules[phase]:
            self._phase = phase
        self.modules[self._phase][module] = None


def unchanged(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"orders": inputs["orders"]}


def main(spark: str, ledger: str, warehouse: str, folder: str) -> None:
    landing = Path(folder, "landing")
    landing.mkdir()
    (landing / "2013-01-01.csv").write_text("customer,amount\nada,1\n")
    source = FileSource(f"{landing}/{{interval_start:%Y-%m-%d}}.csv", schema="customer STRING, amount BIGINT")
    sink = PostgresSink("warehouse", tables={"orders": "public.followed"}, connection="warehouse", create=True)
    pipeline = Pipeline("followed", {"orders": source}, unchanged, [sink])
    follower = Follower()
    sys.setprofile(follower)
    try:
        run_epoch(
            pipeline,
            interval=(DAY, DAY + timedelta(days=1)),
            spark=spark,
            ledger=ledger,
            staging=f"{folder}/staging",
            connections={"warehouse": warehouse},
        )
    finally:
        sys.setprofile(None)
    print(json.dumps({phase: list(modules) for phase, modules in follower.modules.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
