UPDATE lockstep.participant p SET state = 'published', publication = 'found'
FROM jsonb_to_recordset(%(votes)s) AS r (epoch bigint, sink text, shown boolean)
WHERE p.pipeline = %(pipeline)s AND p.epoch = r.epoch AND p.sink = r.sink AND r.shown
