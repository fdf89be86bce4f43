"""Bring the whole stack up and down. Both can be repeated, and `up` clears away what a killed `up` left behind."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from stack.airflow import Airflow
from stack.errors import AlreadyAtWork, PortInUse
from stack.home import CHECKOUT, Home
from stack.java import find_java
from stack.kafka import BROKER, SPARK_CONNECTOR, KafkaBroker
from stack.postgres import HOST, SUPERUSER, PostgresServer, free_port
from stack.processes import Processes
from stack.spark import ConnectServer

DATABASES = ("lockstep", "warehouse", "airflow")


@dataclass(frozen=True)
class Service:
    """One line of `status`."""

    name: str
    pid: int | None
    address: str


class Stack:
    """PostgreSQL, Spark Connect and Airflow under one home; and Kafka, where `make kafka` has fetched it."""

    def __init__(self, home: Home, say: Callable[[str], None] = print, *, kafka: bool = True) -> None:
        self.home = home
        self._say = say
        self.postgres = PostgresServer(home.postgres, port=home.ports.postgres, passfile=home.passfile)
        self._wants_kafka = kafka
        self.kafka = KafkaBroker(home.kafka, port=home.ports.kafka)

    @cached_property
    def airflow(self) -> Airflow:
        return Airflow(
            self._processes,
            self.home.airflow,
            port=self.home.ports.airflow,
            database_port=self.home.ports.postgres,
            environment={**self.environment, **self._connections()},
        )

    @property
    def environment(self) -> dict[str, str]:
        """Where everything is, without passwords: what `lockstep env` prints and what tasks have."""
        kafka = {"LOCKSTEP_KAFKA": self.kafka.bootstrap} if self.kafka.pid else {}
        return {
            **kafka,
            "LOCKSTEP_HOME": str(self.home.root),
            "LOCKSTEP_LEDGER": self._dsn("lockstep"),
            "LOCKSTEP_WAREHOUSE": self._dsn("warehouse"),
            "LOCKSTEP_STAGING": self.home.staging.as_uri(),
            "LOCKSTEP_SPARK": f"sc://{HOST}:{self.home.ports.spark}",
            "LOCKSTEP_OUT": str(self.home.out),
            "LOCKSTEP_AIRFLOW": f"http://{HOST}:{self.home.ports.airflow}",
            "PGPASSFILE": str(self.home.passfile),
        }

    def up(self) -> bool:
        """Start everything and wait until it works; False when it ran already. What fails is stopped again."""
        with self._alone():
            if self.is_up:
                return False
            try:
                self._clear_leftovers()
                self._check()
                self._start()
            except BaseException:
                if self._has_started:
                    self._say("stopping what was started")
                    self._stop()
                raise
            return True

    def down(self) -> bool:
        """Stop everything; False when nothing ran."""
        with self._alone():
            ran = self._has_started
            self._stop()
            return ran

    def clean(self) -> None:
        """Stop everything and delete all it has."""
        with self._alone():
            self._stop()
            self.postgres.remove()
            shutil.rmtree(self.home.root, ignore_errors=True)

    @property
    def is_up(self) -> bool:
        complete = self.home.record.exists() and self.home.environment.exists()
        return complete and self.postgres.pid is not None and not self._processes.dead()

    @property
    def mark(self) -> str:
        """Tells this start of the stack from every other one, before and while it runs."""
        return self._processes.mark

    @property
    def _has_kafka(self) -> bool:
        return self._wants_kafka and BROKER.present and SPARK_CONNECTOR.present

    @property
    def _has_started(self) -> bool:
        return self.home.record.exists() or self.postgres.pid is not None

    def services(self) -> list[Service]:
        """Each process that should run while the stack is up; pid None where it doesn't."""
        ports = self.home.ports
        addresses = {
            "spark-connect": f"sc://{HOST}:{ports.spark}",
            "airflow-api-server": f"http://{HOST}:{ports.airflow}",
        }
        return [
            Service("postgres", self.postgres.pid, f"{HOST}:{ports.postgres}"),
            *([Service("kafka", self.kafka.pid, self.kafka.bootstrap)] if self.kafka.pid else []),
            *(
                Service(one.name, one.pid if one.lives else None, addresses.get(one.name, ""))
                for one in self._processes.started
            ),
        ]

    # --- steps of up and down -----------------------------------------------------------------------------------------

    def _start(self) -> None:
        for folder in (self.home.landing, self.home.staging, self.home.out):
            folder.mkdir(parents=True, exist_ok=True)
        connect = ConnectServer(self._processes, self.home.spark, port=self.home.ports.spark)
        with self._step("PostgreSQL"):
            self._start_postgres()
        spark = connect.launch()
        if self._has_kafka:
            with self._step("Kafka"):
                self.kafka.start()
        with self._step("Airflow's database"):
            self.airflow.prepare()
        airflow = self.airflow.launch()
        with self._step("the ledger"):
            self._migrate_ledger()
        with self._step("Spark Connect"):
            connect.wait(spark)
        with self._step("Airflow"):
            self.airflow.wait(airflow)
        self._write_environment()

    def _stop(self) -> None:
        self.home.environment.unlink(missing_ok=True)
        self._processes.stop()
        self.kafka.stop()
        self.postgres.stop()

    def _start_postgres(self) -> None:
        self.postgres.start()
        for name in DATABASES:
            self.postgres.create_database(name)

    def _migrate_ledger(self) -> None:
        from psycopg2.extensions import make_dsn

        from lockstep.ledger import migrate

        migrate(make_dsn(self.postgres.dsn("lockstep"), passfile=str(self.postgres.passfile)))

    def _clear_leftovers(self) -> None:
        if self._has_started:
            self._say("an earlier start was cut short, or something died: stopping what is left of it")
            self._stop()

    def _check(self) -> None:
        find_java()
        for service, port in vars(self.home.ports).items():
            if service == "kafka" and not self._has_kafka:
                continue
            try:
                free_port(port)
            except PortInUse as error:
                raise PortInUse(port, service) from error

    def _write_environment(self) -> None:
        unfinished = self.home.environment.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self.environment, indent=2) + "\n")
        unfinished.rename(self.home.environment)

    # --- details ------------------------------------------------------------------------------------------------------

    @cached_property
    def _processes(self) -> Processes:
        return Processes(self.home.record)

    def _dsn(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@{HOST}:{self.home.ports.postgres}/{database}"

    def _connections(self) -> Mapping[str, str]:
        """Airflow's Connections, as JSON in AIRFLOW_CONN_*; the password of both databases stands in PGPASSFILE."""
        database = {"conn_type": "postgres", "host": HOST, "port": self.home.ports.postgres, "login": SUPERUSER}
        spark = {"conn_type": "spark_connect", "host": f"sc://{HOST}", "port": self.home.ports.spark}
        return {
            "AIRFLOW_CONN_LOCKSTEP_LEDGER": json.dumps({**database, "schema": "lockstep"}),
            "AIRFLOW_CONN_WAREHOUSE": json.dumps({**database, "schema": "warehouse"}),
            "AIRFLOW_CONN_SPARK": json.dumps(spark),
            **self._kafka_connection(),
        }

    def _kafka_connection(self) -> Mapping[str, str]:
        if not self.kafka.pid:
            return {}
        host, _, port = self.kafka.bootstrap.partition(":")
        return {"AIRFLOW_CONN_KAFKA": json.dumps({"conn_type": "kafka", "host": host, "port": int(port)})}

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._say(f"  {what:<20} ready after {time.monotonic() - began:.1f} s")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the home's lock; it goes with the process. Raises AlreadyAtWork."""
        self.home.root.mkdir(parents=True, exist_ok=True)
        with self.home.lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyAtWork(f"another up or down is at work in {self.home.root}: wait for it") from error
            yield


def checkout_stack(say: Callable[[str], None] = print) -> Stack:
    """The stack of this checkout, or of LOCKSTEP_HOME."""
    (CHECKOUT / "dags").mkdir(exist_ok=True)
    return Stack(Home.from_environment(), say)
