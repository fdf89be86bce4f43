"""MariaDB: connections, LOAD DATA LOCAL, and errors without secrets and rows."""
