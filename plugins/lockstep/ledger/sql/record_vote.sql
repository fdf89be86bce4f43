UPDATE lockstep.participant
SET state = 'prepared', attempt = %(attempt)s, token = %(token)s, handle = %(handle)s, target_id = %(target_id)s, rows = %(rows)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (token IS NULL OR token < %(token)s) AND (execution IS NULL OR execution <= %(token)s)
RETURNING sink
