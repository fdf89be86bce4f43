"""Lockstep's pages in Airflow's UI: pipelines and epochs as `lockstep status` reports them, and actions to repair
them.

They run in Airflow's api-server, which must not execute code of a pipeline: pages read only the ledger; a task or
the command line does what needs a sink or a definition.
"""
