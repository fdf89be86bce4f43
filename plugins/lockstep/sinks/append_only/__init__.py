"""Sinks for targets without transactions: records that carry their own keys."""
