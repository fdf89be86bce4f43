-- `lockstep rebuild`: fills an empty ledger from the contents of sinks and staging, through the regular transitions.

-- name: rebuild_executions
-- Tokens of the lost ledger. A token that exists here was issued by this ledger: that is a conflict.
INSERT INTO lockstep.execution (token, pipeline, epoch, role, actor)
SELECT r.token, %(pipeline)s, r.epoch, 'operator', %(actor)s
FROM jsonb_to_recordset(%(tokens)s) AS r (token bigint, epoch bigint)
ON CONFLICT (token) DO NOTHING

-- name: rebuild_epochs
-- All epochs start as planned.
INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan, planned_at, root, generation, replaces, restate_reason)
SELECT %(pipeline)s, r.id, CASE WHEN r.starts IS NOT NULL THEN tstzrange(r.starts, r.ends) END, 'planned', r.attempt, r.plan,
       coalesce(r.planned_at, now()), r.root, r.generation, r.replaces, r.reason
FROM jsonb_to_recordset(%(epochs)s) AS r (id bigint, starts timestamptz, ends timestamptz, attempt bigint, plan jsonb,
                                          planned_at timestamptz, root bigint, generation int, replaces bigint, reason text)
ORDER BY r.id

-- name: rebuild_participants
-- All participants start as pending.
INSERT INTO lockstep.participant (pipeline, epoch, sink, state)
SELECT %(pipeline)s, r.epoch, r.sink, 'pending' FROM jsonb_to_recordset(%(votes)s) AS r (epoch bigint, sink text)

-- name: rebuild_seals
-- The code version was only in the lost ledger.
UPDATE lockstep.epoch e
SET state = 'staged', wal = r.wal, manifest_hash = r.manifest_hash, summary = r.summary, code_version = 'unknown',
    based_on = r.based_on
FROM jsonb_to_recordset(%(epochs)s) AS r (id bigint, wal text, manifest_hash text, summary jsonb, based_on text)
WHERE e.pipeline = %(pipeline)s AND e.id = r.id

-- name: rebuild_votes
-- Votes are read from the markers in the sinks.
UPDATE lockstep.participant p
SET state = 'prepared', attempt = r.attempt, token = r.token, handle = r.handle, target_id = r.target_id, rows = r.rows
FROM jsonb_to_recordset(%(votes)s) AS r (epoch bigint, sink text, attempt bigint, token bigint, handle text, target_id text,
                                         rows jsonb)
WHERE p.pipeline = %(pipeline)s AND p.epoch = r.epoch AND p.sink = r.sink

-- name: rebuild_decisions
-- Only decided epochs are rebuilt.
UPDATE lockstep.epoch SET state = 'committed' WHERE pipeline = %(pipeline)s AND state = 'staged'

-- name: rebuild_replaced
-- Epochs that are replaced by the epochs just committed.
UPDATE lockstep.epoch e SET state = 'replaced'
FROM lockstep.epoch n
WHERE e.pipeline = %(pipeline)s AND e.state = 'cleaned' AND n.pipeline = e.pipeline AND n.replaces = e.id AND n.state = 'committed'

-- name: rebuild_publications
-- Sinks whose marker was found.
UPDATE lockstep.participant p SET state = 'published', publication = 'found'
FROM jsonb_to_recordset(%(votes)s) AS r (epoch bigint, sink text, published boolean)
WHERE p.pipeline = %(pipeline)s AND p.epoch = r.epoch AND p.sink = r.sink AND r.published

-- name: rebuild_published
-- Epochs that are published in every sink.
UPDATE lockstep.epoch e SET state = 'published'
WHERE e.pipeline = %(pipeline)s AND e.state = 'committed'
  AND NOT EXISTS (SELECT FROM lockstep.participant p
                  WHERE p.pipeline = e.pipeline AND p.epoch = e.id AND p.state <> 'published')

-- name: rebuild_cleaned
-- Epochs of which staging has no files, or a retained WAL.
UPDATE lockstep.epoch SET state = 'cleaned'
WHERE pipeline = %(pipeline)s AND id = ANY(%(epochs)s) AND state = 'published'
