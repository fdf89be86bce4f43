-- Of all, or of those below a number; void ones too. Not by its number, see find_last_epoch.sql.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND generation = 0 AND (%(below)s::bigint IS NULL OR id < %(below)s) ORDER BY id DESC LIMIT 1
