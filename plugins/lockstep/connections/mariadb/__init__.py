"""MariaDB: how it is reached, how identifiers are quoted, what its errors mean, what of them may be told."""
