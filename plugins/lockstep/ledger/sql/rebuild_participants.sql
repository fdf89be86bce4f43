INSERT INTO lockstep.participant (pipeline, epoch, sink, state)
SELECT %(pipeline)s, r.epoch, r.sink, 'pending' FROM jsonb_to_recordset(%(votes)s) AS r (epoch bigint, sink text)
