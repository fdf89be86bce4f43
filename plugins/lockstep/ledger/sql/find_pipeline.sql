SELECT name, identity, last_epoch, hold, forgotten_at, forgotten_by, forgotten_why, keep_wal_time, keep_wal_epochs
FROM lockstep.pipeline WHERE name = %(pipeline)s
