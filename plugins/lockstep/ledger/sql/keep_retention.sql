UPDATE lockstep.pipeline SET keep_wal_time = %(time)s, keep_wal_epochs = %(epochs)s
WHERE name = %(pipeline)s AND (keep_wal_time, keep_wal_epochs) IS DISTINCT FROM (%(time)s::interval, %(epochs)s::integer)
