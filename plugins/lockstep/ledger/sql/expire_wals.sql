UPDATE lockstep.kept_wal SET expired_at = now()
WHERE pipeline = %(pipeline)s AND epoch = ANY(%(epochs)s) AND expired_at IS NULL
