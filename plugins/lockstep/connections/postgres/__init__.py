"""PostgreSQL: how it is reached, what its errors mean, what of them may be told."""
