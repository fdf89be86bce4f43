"""A hook for each of Lockstep's types of Connections, so that Airflow has a form for it, and a connection test where
one is possible. Tasks don't use hooks: roles get what `connections.py` makes of a Connection."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from airflow.sdk import BaseHook

from lockstep.airflow.connections import LEDGER, STAGING, connection, login, staging_of
from lockstep.errors import LockstepError
from lockstep.ledger.report import Report
from lockstep.wal.staging import Staging


class _Hook(BaseHook):
    conn_name_attr = "conn_id"
    default_conn_name: str

    def __init__(self, conn_id: str | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.conn_id = conn_id or self.default_conn_name


class LedgerHook(_Hook):
    """The ledger's database."""

    conn_type = "lockstep_ledger"
    hook_name = "Lockstep ledger"
    default_conn_name = LEDGER

    def get_conn(self) -> Report:
        """A reader of the ledger, to be closed by the caller. Raises `LedgerUnavailable`, `LedgerRefused`."""
        return Report(login(self.conn_id))

    def test_connection(self) -> tuple[bool, str]:
        try:
            with closing(self.get_conn()) as report:
                count = len(report.recoverable())
        except LockstepError as error:
            return False, str(error)
        return True, f"the ledger knows {count} pipeline{'' if count == 1 else 's'}"


class StagingHook(_Hook):
    """The place where WALs are staged."""

    conn_type = "lockstep_staging"
    hook_name = "Lockstep staging"
    default_conn_name = STAGING

    def get_conn(self) -> Staging:
        """Raises `NotConfigured`."""
        return Staging(staging_of(connection(self.conn_id)))

    def test_connection(self) -> tuple[bool, str]:
        """Create, read and delete a file there."""
        try:
            self.get_conn().try_out()
        except LockstepError as error:
            return False, str(error)
        return True, "a file was made, read and deleted there"


class KafkaHook(_Hook):
    """Brokers of a `KafkaSource` or a `KafkaSink`."""

    conn_type = "lockstep_kafka"
    hook_name = "Lockstep Kafka"
    default_conn_name = "kafka"


class MariaDbHook(_Hook):
    """The database of a `MariaDbSink` or a `MariaDbTableSource`."""

    conn_type = "lockstep_mariadb"
    hook_name = "Lockstep MariaDB"
    default_conn_name = "mariadb"


class S3Hook(_Hook):
    """The login at an object store."""

    conn_type = "lockstep_s3"
    hook_name = "Lockstep S3"
    default_conn_name = "s3"
