"""Airflow DAG: every five minutes, finish what a killed run, a deleted DAG or a broken sink left behind."""

from lockstep import recovery_dag

dag = recovery_dag()
