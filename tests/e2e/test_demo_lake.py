"""The demo of lakehouse tables, as `make demo-lake` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stack.home import CHECKOUT
from stack.s3 import SPARK_S3, weed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_every_reader_agrees_after_two_runs_were_killed_and_nothing_is_left(tmp_path: Path) -> None:
    if weed() is None or not SPARK_S3.present:
        pytest.skip("the S3 server is there for Linux only, and `make s3` fetches what Spark reaches it by")
    done = subprocess.run(
        [sys.executable, "-m", "stack", "demo-lake", "--days", "3", "--json"],
        check=False,
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, "LOCKSTEP_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["agrees"]
    assert [sorted(rows.values()) for _, rows in report["seen"]] == [
        [0, 0, 0],
        [943, 943, 943],
        [0, 0, 914],
        [914, 914, 914],
    ]
    assert not (tmp_path / "lake").exists()
