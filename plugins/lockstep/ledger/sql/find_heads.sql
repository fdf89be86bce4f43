SELECT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND head = ANY(%(heads)s::text[]) AND epoch <> ALL(%(but)s::bigint[])
