"""The room of HDFS: where a cluster is, and what lies on it."""
