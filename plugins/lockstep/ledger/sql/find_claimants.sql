SELECT path, epoch FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s) ORDER BY path LIMIT 3
