"""docker-compose.yaml against Airflow, Spark and Lockstep as they are installed.

No container is run: a setting, command or class that isn't there would only be found by whoever runs one.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg2.extensions import parse_dsn

from tests.cases import cases

ROOT = Path(__file__).resolve().parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
#: whatever services and their health checks run, argument by argument
ARGUMENTS = [
    str(argument)
    for service in SERVICES.values()
    for argument in (*service.get("command", []), *service.get("healthcheck", {}).get("test", []))
]
ENVIRONMENT = {name: str(value) for one in SERVICES.values() for name, value in one.get("environment", {}).items()}


def test_every_setting_of_airflow_is_one_that_it_has() -> None:
    from airflow.configuration import conf

    described = conf.configuration_description.items()
    known = {f"AIRFLOW__{section}__{option}".upper() for section, one in described for option in one["options"]}
    settings = {name for name in ENVIRONMENT if name.startswith("AIRFLOW__")}
    assert len(settings) > 10
    assert settings - known == set()


@cases("service", [name for name, one in SERVICES.items() if one.get("command", [""])[0] == "airflow"])
def test_airflow_knows_the_command_of_a_service(service: str) -> None:
    from airflow.cli.cli_parser import get_parser

    _, *arguments = SERVICES[service]["command"]
    assert get_parser().parse_args(arguments).func


def test_airflow_knows_what_init_and_the_health_checks_run() -> None:
    from airflow.cli.cli_parser import get_parser

    lines = [line.strip() for argument in ARGUMENTS for line in argument.splitlines()]
    commands = [line.split() for line in lines if line.startswith("airflow ")]
    assert len(commands) == 3
    for _, *arguments in commands:
        assert get_parser().parse_args(arguments).func


def test_spark_has_the_classes_that_the_services_start() -> None:
    import pyspark

    named = {found for argument in ARGUMENTS for found in re.findall(r"org\.apache\.spark\.[\w.]+", argument)}
    assert len(named) == 3
    there: set[str] = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"):
        there.update(entry.removesuffix(".class").replace("/", ".") for entry in zipfile.ZipFile(jar).namelist())
    assert named - there == set()


@cases("id, host", [("lockstep_ledger", "ledger"), ("warehouse", "warehouse")])
def test_lockstep_reads_the_connections_as_they_are_written(
    id: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.orchestration.connections import AirflowConnections

    variable = f"AIRFLOW_CONN_{id.upper()}"
    monkeypatch.setenv(variable, re.sub(r"\$\{\w+:\?\}", "secret", ENVIRONMENT[variable]))
    dsn = parse_dsn(AirflowConnections()[id])
    assert (dsn["host"], dsn["password"], dsn["dbname"]) == (host, "secret", dsn["user"])
