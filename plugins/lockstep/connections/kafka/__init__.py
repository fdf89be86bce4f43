"""Clients of Kafka and of schema registries, for the source and the sink."""
