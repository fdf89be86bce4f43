"""Tables of databases as sources."""
