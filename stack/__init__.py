"""The embedded default stack: PostgreSQL, a warm Spark Connect server and Airflow, on loopback, under .lockstep/."""
