"""Tells Airflow that Lockstep is here, and has it imported once: tasks are forked from processes that load plugins.

Without this every task of every run would spend about half a second of CPU importing the same modules again.
"""

from importlib.metadata import PackageNotFoundError, version

from airflow.plugins_manager import AirflowPlugin

import lockstep.orchestration.dag
import lockstep.sinks.files
import lockstep.sinks.postgres
import lockstep.sources.files  # noqa: F401 - what nearly every DAG file imports


def _version() -> str:
    try:
        return version("lockstep")
    except PackageNotFoundError:  # the plugins folder alone, not installed
        return "not installed as a package"


class LockstepPlugin(AirflowPlugin):
    """Registers nothing: the operators come with the DAGs that use them."""

    name = "lockstep"
    version = _version()
