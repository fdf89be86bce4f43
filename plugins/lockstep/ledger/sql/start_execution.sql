-- The youngest execution of prepare: no older one may vote, and commit doesn't count a vote that it gave before.
UPDATE lockstep.participant SET execution = %(token)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (execution IS NULL OR execution < %(token)s)
RETURNING sink
