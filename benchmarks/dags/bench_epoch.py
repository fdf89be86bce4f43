"""The benchmark's Airflow DAG that moves a small epoch. (Airflow looks only into files that say airflow and dag.)"""

from benchmarks.dag_pipeline import pipeline
from lockstep import epoch_dag

dag = epoch_dag(pipeline, max_active_runs=1)
