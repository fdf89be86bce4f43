UPDATE lockstep.epoch
SET attempt = %(token)s, attempted_at = now(), owner_dag = %(dag_id)s, owner_run = %(run_id)s,
    lease_until = now() + %(lease)s, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt < %(token)s
RETURNING *
