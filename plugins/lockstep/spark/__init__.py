"""Spark: how it is reached, what its errors mean, its types, and what runs on its workers for a source."""
