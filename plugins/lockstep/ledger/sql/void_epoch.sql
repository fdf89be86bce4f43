UPDATE lockstep.epoch SET state = 'void', lease_until = NULL, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt = %(attempt)s RETURNING *
