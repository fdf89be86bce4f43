UPDATE lockstep.epoch
SET state = 'staged', wal = %(wal)s, manifest_hash = %(manifest_hash)s, summary = %(summary)s, code_version = %(code_version)s,
    based_on = %(based_on)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s AND wal IS NULL
RETURNING *
