"""DAGs, operators and the plugin for Airflow. Everything here needs Airflow, so its version is checked first."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version

from lockstep.distribution import PackageTooOld

OLDEST = "3.1"


def require_airflow() -> None:
    """Raise `PackageTooOld` for an Airflow that lacks what is imported here, with its version instead of the missing
    name. If Airflow isn't installed at all the import fails by itself."""
    with suppress(PackageNotFoundError):
        if Version(installed := version("apache-airflow")) < Version(OLDEST):
            raise PackageTooOld(
                f"Airflow {installed} is too old: {OLDEST} or newer is needed; older ones lack airflow.sdk, or what "
                "Lockstep's DAGs take from it",
                name="airflow",
            )


require_airflow()
