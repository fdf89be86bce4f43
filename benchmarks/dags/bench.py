"""Airflow DAGs of the benchmark: one that moves a small epoch, and one of as many tasks that do nothing."""

from airflow.sdk import DAG, task

from benchmarks.dag_pipeline import pipeline
from lockstep import epoch_dag

epoch = epoch_dag(pipeline, max_active_runs=1)

with DAG("bench_empty", schedule=None, catchup=False, max_active_runs=1) as empty:

    def idle(name: str):
        @task(task_id=name)
        def nothing() -> None:
            """As much as Airflow itself costs."""

        return nothing()

    begin, stage, commit, cleanup = idle("begin"), idle("stage"), idle("commit"), idle("cleanup")
    prepared = [idle("prepare_warehouse"), idle("prepare_archive")]
    published = [idle("publish_warehouse"), idle("publish_archive")]
    begin >> stage >> prepared >> commit
    for prepare in prepared:
        prepare >> commit
    commit >> published
    for publish in published:
        publish >> cleanup
