"""What Spark drivers run, and the pipelines that they load: nothing here imports Airflow."""
