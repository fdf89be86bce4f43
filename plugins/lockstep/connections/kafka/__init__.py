"""Clients of a Kafka cluster, for the source and the sink."""
