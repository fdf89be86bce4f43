-- Tokens of the lost ledger. One that stands here already was given out by this one, to somebody else.
INSERT INTO lockstep.execution (token, pipeline, epoch, role, actor)
SELECT r.token, %(pipeline)s, r.epoch, 'operator', %(actor)s
FROM jsonb_to_recordset(%(tokens)s) AS r (token bigint, epoch bigint)
ON CONFLICT (token) DO NOTHING
