"""Lockstep's plugin for an Airflow that has the package on its path without having it installed, as a checkout does.

Airflow finds an installed package's plugin by its entry point; registered here once more it would be an error.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="lockstep"):
    from lockstep.airflow.plugin import LockstepPlugin as LockstepPlugin
