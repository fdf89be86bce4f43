SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id >= %(oldest)s AND wal IS NOT NULL ORDER BY id
