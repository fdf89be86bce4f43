"""DuckDB, which answers SQL over rows that it is handed."""
