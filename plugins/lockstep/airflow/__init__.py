"""DAGs, operators, and what Airflow finds of Lockstep. All of it needs Airflow: which one is looked at before that."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version

from lockstep.distribution import PackageTooOld

OLDEST = "3.1"


def require_airflow() -> None:
    """Raise `PackageTooOld` of an Airflow without what is imported here, by its number instead of by a name that it
    lacks. None at all is left to the import."""
    with suppress(PackageNotFoundError):
        if Version(installed := version("apache-airflow")) < Version(OLDEST):
            raise PackageTooOld(
                f"Airflow {installed} is too old: {OLDEST} or newer is needed; older ones lack airflow.sdk, or what "
                "Lockstep's DAGs take from it",
                name="airflow",
            )


require_airflow()
