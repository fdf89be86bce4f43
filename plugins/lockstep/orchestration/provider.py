"""What Airflow lists of Lockstep among its providers. The plugin has an entry point of its own."""

from __future__ import annotations

from lockstep.version import DISTRIBUTION


def get_provider_info() -> dict[str, object]:
    """Found by Airflow through the package's entry point; the shape is that of its provider_info.schema.json."""
    return {
        "package-name": DISTRIBUTION,
        "name": "Lockstep",
        "description": "Exactly-once output: a DAG run moves one epoch into all its sinks by two-phase commit.",
    }
