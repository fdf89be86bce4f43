"""Which tests run when, and how processes share them out: one table, by folder, with a file where one differs.

A tier holds the one before it. `check` is for every edit: nothing in it waits for a server that takes more than two
seconds to start, and no file takes more than a few seconds. `test` is for every change that is to land. `all` is the
rest: whole sweeps, a whole Airflow, Spark's own drivers and clusters, the wheel in empty environments.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path, PurePosixPath

TESTS = Path(__file__).parent


class Tier(StrEnum):
    """Of a test: the first tier that runs it. Of a run: the last tier whose tests it runs."""

    CHECK = "check"
    TEST = "test"
    ALL = "all"

    def holds(self, other: Tier) -> bool:
        tiers = list(Tier)
        return tiers.index(other) <= tiers.index(self)


class Share(Enum):
    """What one process runs by itself when several share the tests out."""

    FILE = "file"
    FOLDER = "folder"  #: as its tests share what takes long to start
    PARAMETER = "parameter"  #: a file too long for one process: its tests go by their first parameter


@dataclass(frozen=True)
class Part:
    """Of the suite. `rank`: what takes longest comes first, so that no process is left alone with it at the end."""

    tier: Tier
    share: Share = Share.FILE
    rank: int = 9


CHECK, TEST, ALL = Tier
SUITE = {
    "audits": Part(CHECK),
    "audits/test_matching.py": Part(TEST),
    "cli": Part(TEST),
    "compose": Part(ALL, Share.FOLDER, rank=2),
    "crash": Part(TEST),
    "crash/test_compaction.py": Part(ALL),
    "crash/test_delta.py": Part(ALL, rank=3),
    "crash/test_delta_on_s3.py": Part(ALL, rank=3),
    "crash/test_expiry.py": Part(ALL),
    "crash/test_faults.py": Part(TEST, rank=4),
    "crash/test_hdfs.py": Part(ALL, rank=3),
    "crash/test_iceberg_epochs.py": Part(ALL, rank=3),
    "crash/test_kill_and_zombie.py": Part(TEST, Share.PARAMETER, rank=1),
    "crash/test_pack_sweep.py": Part(ALL, Share.PARAMETER, rank=3),
    "crash/test_restage.py": Part(ALL),
    "crash/test_restated_lakes.py": Part(ALL),
    "crash/test_restating.py": Part(TEST, Share.PARAMETER, rank=2),
    "crash/test_restored_ledger.py": Part(ALL),
    "crash/test_s3_staging.py": Part(ALL, rank=3),
    "dags": Part(CHECK, Share.FOLDER),
    "dags/test_assets.py": Part(TEST),
    "dags/test_connections.py": Part(TEST),
    "dags/test_dag_files.py": Part(TEST),
    "dags/test_launching_twice.py": Part(TEST),
    "dags/test_leaving.py": Part(TEST),
    "dags/test_lineage.py": Part(TEST),
    "dags/test_metrics.py": Part(TEST),
    "dags/test_recovery.py": Part(TEST),
    "dags/test_rotated_logins.py": Part(TEST),
    "e2e": Part(ALL, Share.FOLDER, rank=2),
    "hdfs": Part(TEST),
    "hdfs/test_file_system.py": Part(ALL),
    "kept": Part(TEST),
    "kept/test_kept.py": Part(ALL),
    "ledger": Part(CHECK),
    "ledger/test_durability.py": Part(TEST),
    "ledger/test_lost_links.py": Part(TEST),
    "ledger/test_operator_machine.py": Part(TEST),
    "ledger/test_races.py": Part(TEST),
    "model": Part(TEST),
    "object_store": Part(TEST),
    "package": Part(ALL, Share.FOLDER),
    "security": Part(TEST),
    "security/test_canary.py": Part(ALL),
    "simulation": Part(TEST),
    "simulation/test_simulation.py": Part(CHECK),
    "sinks": Part(TEST, rank=5),
    "sinks/compaction/test_replacing.py": Part(ALL, rank=5),
    "sinks/iceberg/test_foreign_writers.py": Part(ALL, rank=5),
    "sinks/test_delta_on_s3.py": Part(ALL, rank=5),
    "sinks/test_hdfs_files.py": Part(ALL, rank=5),
    "sinks/test_kafka_avro.py": Part(ALL, rank=5),
    "sinks/test_kafka_crashes.py": Part(ALL, rank=5),
    "sinks/test_kafka_faults.py": Part(ALL, rank=5),
    "sinks/test_kafka_shards.py": Part(ALL, rank=5),
    "sinks/test_kafka_topics.py": Part(ALL, rank=5),
    "sinks/test_operational_settings.py": Part(ALL, rank=5),
    "sinks/test_outside_readers.py": Part(ALL, rank=5),
    "sources": Part(TEST),
    "sources/test_file_source.py": Part(CHECK),
    "sources/test_postgres_table.py": Part(CHECK),
    "spark": Part(TEST, Share.FOLDER, rank=3),
    "spark/test_audits_in_spark.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_computing_once.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_conservation.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_delta.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_drivers.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_hdfs.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_iceberg.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_kafka.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_kafka_login.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_kafka_registry.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_s3_staging.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_sessions.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_state.py": Part(ALL, Share.FOLDER, rank=3),
    "spark/test_windows.py": Part(ALL, Share.FOLDER, rank=3),
    "stack": Part(TEST),
    "stack/test_servers.py": Part(ALL),
    "testing": Part(ALL),
    "ui": Part(TEST, Share.FOLDER),
    "ui/test_in_a_browser.py": Part(ALL, Share.FOLDER),
    "unit": Part(CHECK),
    "unit/test_extras.py": Part(TEST),
    "unit/test_computing.py": Part(TEST),
    "wal": Part(CHECK),
}


def tier_of(path: PurePosixPath, own: Tier | None) -> Tier:
    """The tier of a test in a file, relative to tests/; `own`: that of its marker."""
    return own or part_of(path).tier


def part_of(path: PurePosixPath) -> Part:
    """Of a test file, relative to tests/: the nearest row of the table. KeyError: none of its folders has one."""
    for place in (path, *path.parents):
        if str(place) in SUITE:
            return SUITE[str(place)]
    raise KeyError(f"{path} has no row in tests/tiers.py")


@cache
def files(tier: Tier) -> list[PurePosixPath]:
    """The test files that a run of `tier` runs, relative to tests/."""
    everything = sorted(PurePosixPath(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py"))
    return [path for path in everything if tier.holds(part_of(path).tier)]
