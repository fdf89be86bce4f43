"""Lockstep's pages in Airflow's UI: pipelines and epochs as `lockstep status` tells them, and what mends them.

They run in Airflow's api-server, which therefore executes no code of a pipeline: what a page asks is asked of the
ledger, and what needs a sink or a definition is done by a task or by the command line.
"""
