"""Access to object stores: S3 and compatible ones, Google's and Azure's."""
