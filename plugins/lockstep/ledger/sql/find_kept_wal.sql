SELECT * FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s
