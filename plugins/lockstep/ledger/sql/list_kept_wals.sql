SELECT * FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s ORDER BY epoch
