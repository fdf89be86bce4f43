SELECT path FROM unnest(%(paths)s::text[]) AS path
EXCEPT
SELECT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s::text[])
