-- begin: plans, claims of files, attempts, leases, runs.

-- name: insert_epoch
INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan, owner_dag, owner_run, lease_until,
                            root, generation, replaces, replaces_to, restate_reason, restores)
VALUES (%(pipeline)s, %(epoch)s, CASE WHEN %(start)s::timestamptz IS NOT NULL THEN tstzrange(%(start)s, %(end)s) END, 'planned', %(attempt)s, %(plan)s,
        %(dag_id)s, %(run_id)s, now() + %(lease)s, %(root)s, %(generation)s, %(replaces)s, %(replaces_to)s, %(reason)s, %(restores)s)
RETURNING *

-- name: insert_participant
INSERT INTO lockstep.participant (pipeline, epoch, sink, state) VALUES (%(pipeline)s, %(epoch)s, %(sink)s, 'pending')

-- name: delete_participants
DELETE FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND state = 'pending'

-- name: merge_epoch
UPDATE lockstep.epoch SET plan = %(plan)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s RETURNING *

-- name: replan_epoch
UPDATE lockstep.epoch SET plan = %(plan)s, lease_until = NULL, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s RETURNING *

-- name: lock_epoch
-- A statement of its own: what follows sees what the row's last writer did.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s FOR UPDATE

-- name: raise_attempt
UPDATE lockstep.epoch
SET attempt = %(token)s, attempted_at = now(), owner_dag = %(dag_id)s, owner_run = %(run_id)s,
    lease_until = now() + %(lease)s, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt < %(token)s
RETURNING *

-- name: void_epoch
-- Without its WAL's name: what was sealed is rubbish from now on.
UPDATE lockstep.epoch SET state = 'void', wal = NULL, manifest_hash = NULL, based_on = NULL, lease_until = NULL, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt = %(attempt)s RETURNING *

-- name: void_votes
UPDATE lockstep.participant
SET state = 'pending', execution = NULL, attempt = NULL, token = NULL, handle = NULL, target_id = NULL, rows = NULL, turn = false
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND state IN ('pending', 'prepared')

-- name: save_run
INSERT INTO lockstep.run (dag_id, run_id, pipeline, epoch, attempt, restate)
VALUES (%(dag_id)s, %(run_id)s, %(pipeline)s, %(epoch)s, %(attempt)s, %(restate)s)
ON CONFLICT (dag_id, run_id) DO UPDATE
    SET pipeline = excluded.pipeline, epoch = excluded.epoch, attempt = excluded.attempt, restate = excluded.restate,
        started_at = now()

-- name: find_run
SELECT pipeline, epoch, attempt, restate FROM lockstep.run WHERE dag_id = %(dag_id)s AND run_id = %(run_id)s

-- name: find_run_of_attempt
SELECT dag_id, run_id FROM lockstep.run
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND attempt = %(attempt)s ORDER BY started_at DESC LIMIT 1

-- name: renew_lease
-- Never earlier: another task of the attempt may wait for longer.
UPDATE lockstep.epoch SET lease_until = greatest(lease_until, now() + %(lease)s)
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND attempt = %(attempt)s RETURNING attempt

-- name: find_lease
SELECT lease_until FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND lease_until > now()

-- name: count_in_flight
SELECT count(*) AS in_flight FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') AND state <> 'published' AND generation = 0

-- name: count_attempts
-- The how-manieth attempt a token is, and whether a begin took it: those of abort, recover and people are nobody's.
SELECT count(DISTINCT attempt) AS ordinal, coalesce(bool_or(attempt = %(attempt)s), false) AS begun FROM lockstep.transition
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink IS NULL AND role = 'begin' AND attempt <= %(attempt)s

-- name: take_token
INSERT INTO lockstep.execution (pipeline, epoch, sink, attempt, role, actor)
VALUES (%(pipeline)s, %(epoch)s, %(sink)s, %(attempt)s, %(role)s, %(actor)s) RETURNING token

-- name: advance_token_sequence
SELECT max(nextval('lockstep.token')) FROM generate_series(1, %(count)s)

-- name: start_execution
-- The youngest execution of prepare: no older one may vote, and commit doesn't count a vote that it gave before.
UPDATE lockstep.participant SET execution = %(token)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (execution IS NULL OR execution < %(token)s)
RETURNING sink

-- name: find_own_execution
-- what an attempt has begun came after it, so only the newest tokens are looked through
SELECT token FROM lockstep.execution
WHERE token > %(attempt)s AND pipeline = %(pipeline)s AND epoch = %(epoch)s
  AND attempt = %(attempt)s AND role = %(role)s AND actor = %(actor)s
ORDER BY token DESC LIMIT 1

-- name: find_executions
-- What carries a token that opened an attempt is of another ledger. Of executions of a ledger that was lost, and rebuilt,
-- nothing but the token is known.
SELECT token, sink IS NOT NULL OR attempt IS NOT NULL OR (role = 'operator' AND EXISTS (
    SELECT FROM lockstep.pipeline_change WHERE pipeline = %(pipeline)s AND change = 'rebuilt')) AS by_execution
FROM lockstep.execution WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND token = ANY(%(tokens)s)

-- name: find_claims
SELECT c.* FROM unnest(%(paths)s::text[]) AS w (path) CROSS JOIN LATERAL (
    SELECT path, starts, ends, size, mtime_ns, digest FROM lockstep.claim
    WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = w.path AND epoch <> ALL(%(exclude)s::bigint[])
    ORDER BY starts DESC LIMIT 1
) c

-- name: find_own_claims
SELECT DISTINCT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s::text[]) AND epoch = ANY(%(own)s::bigint[])

-- name: find_any_claim
-- By the order of an index: without one, the claims of others would be read through.
SELECT FROM lockstep.claim WHERE pipeline = %(pipeline)s ORDER BY pipeline, source, path, starts LIMIT 1

-- name: find_heads
SELECT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND head = ANY(%(heads)s::text[]) AND epoch <> ALL(%(exclude)s::bigint[])

-- name: find_unclaimed
SELECT path FROM unnest(%(paths)s::text[]) AS path
EXCEPT
SELECT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s::text[])

-- name: find_claimants
-- Claims that can't be: a whole file that somebody has a part of, a range that isn't the next one of its file.
SELECT w.path, w.starts, c.epoch, c.ends
FROM unnest(%(paths)s::text[], %(starts)s::bigint[], %(ends)s::bigint[]) AS w (path, starts, ends)
LEFT JOIN LATERAL (
    SELECT epoch, coalesce(ends, -1) AS ends FROM lockstep.claim
    WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = w.path ORDER BY starts DESC LIMIT 1
) c ON true
WHERE CASE WHEN w.ends IS NULL THEN c.epoch IS NOT NULL ELSE coalesce(c.ends, 0) <> w.starts END
ORDER BY w.path LIMIT 3

-- name: claim_files
INSERT INTO lockstep.claim (pipeline, source, path, starts, ends, size, mtime_ns, digest, head, epoch)
SELECT
    %(pipeline)s, %(source)s, w.path, w.starts, w.ends, w.size, w.mtime_ns, nullif(w.digest, ''), nullif(w.head, ''), %(epoch)s
FROM unnest(%(paths)s::text[], %(starts)s::bigint[], %(ends)s::bigint[], %(sizes)s::bigint[], %(mtimes)s::bigint[], %(digests)s::text[],
    %(heads)s::text[]) AS w (path, starts, ends, size, mtime_ns, digest, head)

-- name: release_claims
DELETE FROM lockstep.claim WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s
