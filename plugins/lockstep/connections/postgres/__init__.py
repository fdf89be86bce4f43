"""PostgreSQL: connections, and errors without secrets and rows."""
