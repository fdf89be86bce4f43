"""Lockstep's plugin for an Airflow that has the package on its path without having it installed, as in a checkout.

Airflow finds the plugin of an installed package by its entry point; a second registration here would be an error.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="lockstep"):
    from lockstep.airflow.plugin import LockstepPlugin as LockstepPlugin
