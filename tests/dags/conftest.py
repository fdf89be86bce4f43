"""Airflow without a database: it gets a home of its own before anything imports it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_home = tempfile.TemporaryDirectory(prefix="lockstep-airflow-")
os.environ.setdefault("AIRFLOW_HOME", _home.name)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))
