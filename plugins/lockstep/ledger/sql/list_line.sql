-- What a time line is drawn from: the youngest `limit` epochs of a pipeline below number `before` (null: of all).
SELECT e.id, lower(e.span) AS start, upper(e.span) AS "end", e.state,
       (SELECT sum((value ->> 'rows')::bigint) FROM jsonb_each(e.summary -> 'outputs'))::bigint AS rows
FROM lockstep.epoch e
WHERE e.pipeline = %(pipeline)s AND (%(before)s::bigint IS NULL OR e.id < %(before)s)
ORDER BY e.id DESC LIMIT %(limit)s
