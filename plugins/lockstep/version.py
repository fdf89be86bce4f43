"""Which Lockstep this is, as the installed package says; pyproject.toml is the only place where the number stands."""

from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "airflow-lockstep"


def _installed() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a zip on a Spark driver, or a folder on the path
        return "unknown: not installed as a package"


__version__ = _installed()
