SELECT DISTINCT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s::text[]) AND epoch = ANY(%(own)s::bigint[])
