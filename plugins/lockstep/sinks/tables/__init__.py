"""What sinks of tables share, whatever the database."""
