"""Airflow DAG: every five minutes, finish the epochs that a killed run, a deleted DAG or a broken sink left
unfinished."""

from lockstep import recovery_dag

dag = recovery_dag()
