DELETE FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND expired_at IS NOT NULL
