"""Exactly-once output for Airflow + Spark pipelines."""
