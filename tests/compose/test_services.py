"""docker-compose.yaml runs: each service's very command, environment and health check, as a process on a machine of its
own, from what the image's recipe copies and sets.

What stands in for images of other people is told in `inside.py`; what only building the image could show (that its
packages install) isn't shown here.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from stack.landing import day_file, land
from stack.s3 import SPARK_S3, weed
from tests.compose.composition import recipe, services
from tests.compose.sandbox import MISSING, Composed, composed, find_bubblewrap
from tests.e2e.airflow_api import wait_for

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(900)]

DAY = date(2013, 1, 1)
RUN = "by_hand"
SECONDS = 300


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    land(folder, [DAY])
    return folder


@pytest.fixture(scope="module")
def composition(tmp_path_factory: pytest.TempPathFactory, landing: Path) -> Iterator[Composed]:
    if find_bubblewrap() is None:
        pytest.skip(MISSING)
    if weed() is None or not SPARK_S3.present:
        pytest.skip("what Spark reaches an S3 server by isn't here: `make s3` fetches it")
    passwords = ("STAGING", "METADATA", "LEDGER", "WAREHOUSE", "ADMIN")
    variables = {f"{name}_PASSWORD": os.urandom(12).hex() for name in passwords}
    variables |= {name: os.urandom(24).hex() for name in ("API_SECRET_KEY", "JWT_SECRET")}
    variables |= {"FERNET_KEY": base64.urlsafe_b64encode(os.urandom(32)).decode(), "LANDING": str(landing)}
    with composed(services(variables), recipe(), tmp_path_factory.mktemp("composed")) as found:
        yield found


def test_a_day_gets_from_the_landing_folder_into_both_sinks(composition: Composed, landing: Path) -> None:
    conf = json.dumps({"interval_start": f"{DAY}T00:00:00+00:00", "interval_end": "2013-01-02T00:00:00+00:00"})
    wait_for(
        lambda: composition.execute("scheduler", "airflow", "dags", "details", "flights")[0] == 0, "the DAG", SECONDS
    )
    _told(composition, "airflow", "dags", "unpause", "--yes", "flights")
    _told(composition, "airflow", "dags", "trigger", "flights", "--run-id", RUN, "--conf", conf)
    wait_for(lambda: (_epoch(composition) or {"epoch": {}})["epoch"].get("state") == "cleaned", "its epoch", SECONDS)
    epoch = _epoch(composition)
    assert epoch is not None
    rows = len(day_file(landing, "flights", DAY).read_text().splitlines()) - 1
    assert epoch["rows"]["flights"] == rows
    verified = json.loads(_told(composition, "lockstep", "verify", "flights", "--json"))
    assert {(one["sink"], one["problem"]) for one in verified} == {("warehouse", None), ("delays", None)}


def test_every_service_stays_well_by_its_own_check(composition: Composed) -> None:
    assert set(composition.healthy().values()) == {""}
    assert len(composition.healthy()) >= 10


def _epoch(composition: Composed) -> dict[str, Any] | None:
    """The day's, None while there is none."""
    code, output = composition.execute("scheduler", "lockstep", "status", "flights", "--json")
    if code:
        assert "UnknownEpoch" in output, output
        return None
    return next(iter(json.loads(output)[0]["epochs"]), None)


def _told(composition: Composed, *command: str) -> str:
    code, output = composition.execute("scheduler", *command)
    assert code == 0, output
    return output
