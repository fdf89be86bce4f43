-- Without its WAL's name: what was sealed is rubbish from now on.
UPDATE lockstep.epoch SET state = 'void', wal = NULL, manifest_hash = NULL, based_on = NULL, lease_until = NULL, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt = %(attempt)s RETURNING *
