"""docs/lockstep.rules.yaml against its own cases, by Prometheus' promtool where that is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

DOCS = Path(__file__).parents[2] / "docs"
CASES = DOCS / "lockstep.rules.test.yaml"
MISSING = "promtool is not here: put the one of a Prometheus onto the PATH, or say where it is by PROMTOOL"


def test_every_alert_fires_in_one_of_the_cases() -> None:
    [group] = yaml.safe_load((DOCS / "lockstep.rules.yaml").read_text())["groups"]
    cases = yaml.safe_load(CASES.read_text())["tests"]
    asked = [one for case in cases for one in case.get("promql_expr_test", [])]
    fire = {
        yaml.safe_load(sample["labels"].replace("=", ": "))["alertname"]
        for one in asked
        for sample in one["exp_samples"]
    }
    fire |= {one["alertname"] for case in cases for one in case.get("alert_rule_test", []) if one["exp_alerts"]}
    assert {rule["alert"] for rule in group["rules"]} == fire


def test_the_alerts_tell_what_the_cases_say() -> None:
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if promtool is None:
        pytest.skip(MISSING)
    done = subprocess.run([promtool, "test", "rules", CASES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
