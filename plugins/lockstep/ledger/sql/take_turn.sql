-- Only the youngest execution; void_votes ends it with the attempt.
UPDATE lockstep.participant SET turn = true
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND execution = %(token)s
RETURNING sink
