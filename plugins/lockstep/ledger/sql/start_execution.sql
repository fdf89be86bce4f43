-- The largest execution of prepare that has started: a smaller one's vote no longer counts.
UPDATE lockstep.participant SET execution = %(token)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (execution IS NULL OR execution < %(token)s)
RETURNING sink
