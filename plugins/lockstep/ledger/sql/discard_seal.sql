-- The sealed WAL fails its checks, or a person replans: only in a new attempt, only before the decision.
UPDATE lockstep.epoch SET state = 'planned', wal = NULL, manifest_hash = NULL, summary = NULL, code_version = NULL, based_on = NULL
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'staged' AND attempt = %(attempt)s RETURNING *
