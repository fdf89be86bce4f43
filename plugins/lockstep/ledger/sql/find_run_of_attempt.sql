SELECT dag_id, run_id FROM lockstep.run
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND attempt = %(attempt)s ORDER BY started_at DESC LIMIT 1
