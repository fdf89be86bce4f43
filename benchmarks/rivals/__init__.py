"""What other ways into PostgreSQL do when they are killed; run on the spot, not told from their documents."""
