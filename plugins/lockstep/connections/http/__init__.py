"""The room of HTTP: where a server is, and the login there."""
