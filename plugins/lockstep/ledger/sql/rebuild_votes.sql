UPDATE lockstep.participant p
SET state = 'prepared', attempt = r.attempt, token = r.token, handle = r.handle, target_id = r.target_id, rows = r.rows
FROM jsonb_to_recordset(%(votes)s) AS r (epoch bigint, sink text, attempt bigint, token bigint, handle text, target_id text,
                                         rows jsonb)
WHERE p.pipeline = %(pipeline)s AND p.epoch = r.epoch AND p.sink = r.sink
