"""Tells Airflow that Lockstep is here: `airflow plugins` lists it."""

from importlib.metadata import PackageNotFoundError, version

from airflow.plugins_manager import AirflowPlugin


def _version() -> str:
    try:
        return version("lockstep")
    except PackageNotFoundError:  # the plugins folder alone, not installed
        return "not installed as a package"


class LockstepPlugin(AirflowPlugin):
    """Nothing to register: the operators come with the DAGs that use them."""

    name = "lockstep"
    version = _version()
