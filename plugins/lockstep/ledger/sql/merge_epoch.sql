UPDATE lockstep.epoch SET plan = %(plan)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s RETURNING *
