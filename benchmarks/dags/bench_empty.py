"""The benchmark's DAG of as many tasks that do nothing. In a file of its own: each task imports its DAG's file."""

from airflow.sdk import DAG, XComArg, task

with DAG("bench_empty", schedule=None, catchup=False, max_active_runs=1) as empty:

    def idle(name: str) -> XComArg:
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
