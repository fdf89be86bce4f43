"""How object stores are reached: S3 and what speaks like it, Google's and Azure's."""
