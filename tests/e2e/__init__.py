"""What people do to a running Airflow. A package, so that its stack ends with its last test."""
