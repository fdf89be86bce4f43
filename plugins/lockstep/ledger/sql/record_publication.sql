-- What was amiss with rows whose place these take goes with them, sink by sink.
WITH proven AS (
    UPDATE lockstep.participant q SET unproven = NULL FROM lockstep.epoch e
    WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s AND q.pipeline = e.pipeline AND q.epoch BETWEEN e.replaces AND coalesce(e.replaces_to, e.replaces)
      AND q.sink = %(sink)s AND q.unproven IS NOT NULL
)
UPDATE lockstep.participant SET state = 'published', publication = %(publication)s, unproven = %(unproven)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' AND token = %(token)s
RETURNING sink
