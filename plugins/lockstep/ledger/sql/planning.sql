-- begin: plans, file claims, attempts, leases, runs.

-- name: insert_epoch
-- A planned epoch with the lease of the run that begins it.
INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan, owner_dag, owner_run, lease_until,
                            root, generation, replaces, replaces_to, restate_reason, restores)
VALUES (%(pipeline)s, %(epoch)s, CASE WHEN %(start)s::timestamptz IS NOT NULL THEN tstzrange(%(start)s, %(end)s) END, 'planned', %(attempt)s, %(plan)s,
        %(dag_id)s, %(run_id)s, now() + %(lease)s, %(root)s, %(generation)s, %(replaces)s, %(replaces_to)s, %(reason)s, %(restores)s)
RETURNING *

-- name: insert_participant
-- One per sink of the plan.
INSERT INTO lockstep.participant (pipeline, epoch, sink, state) VALUES (%(pipeline)s, %(epoch)s, %(sink)s, 'pending')

-- name: delete_participants
-- replan freezes another set of sinks.
DELETE FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND state = 'pending'

-- name: merge_epoch
-- Stores the extended plan of a planned epoch.
UPDATE lockstep.epoch SET plan = %(plan)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s RETURNING *

-- name: replan_epoch
-- Stores the new plan of a planned epoch, and ends its lease.
UPDATE lockstep.epoch SET plan = %(plan)s, lease_until = NULL, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s RETURNING *

-- name: lock_epoch
-- A separate statement, so that the following ones see the changes of the row's last writer.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s FOR UPDATE

-- name: raise_attempt
-- Fences all tasks of older attempts.
UPDATE lockstep.epoch
SET attempt = %(token)s, attempted_at = now(), owner_dag = %(dag_id)s, owner_run = %(run_id)s,
    lease_until = now() + %(lease)s, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt < %(token)s
RETURNING *

-- name: void_epoch
-- Clears the WAL, so that its files can be deleted.
UPDATE lockstep.epoch SET state = 'void', wal = NULL, manifest_hash = NULL, based_on = NULL, lease_until = NULL, reason = %(reason)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state IN ('planned', 'staged') AND attempt = %(attempt)s RETURNING *

-- name: void_votes
-- Votes of an older attempt never count.
UPDATE lockstep.participant
SET state = 'pending', execution = NULL, attempt = NULL, token = NULL, handle = NULL, target_id = NULL, rows = NULL, turn = false
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND state IN ('pending', 'prepared')

-- name: save_run
-- Tasks of a run look up their epoch and attempt here.
INSERT INTO lockstep.run (dag_id, run_id, pipeline, epoch, attempt, restate_reason)
VALUES (%(dag_id)s, %(run_id)s, %(pipeline)s, %(epoch)s, %(attempt)s, %(restate_reason)s)
ON CONFLICT (dag_id, run_id) DO UPDATE
    SET pipeline = excluded.pipeline, epoch = excluded.epoch, attempt = excluded.attempt, restate_reason = excluded.restate_reason,
        started_at = now()

-- name: find_run
-- Epoch and attempt that a run works for.
SELECT pipeline, epoch, attempt, restate_reason FROM lockstep.run WHERE dag_id = %(dag_id)s AND run_id = %(run_id)s

-- name: find_run_of_attempt
-- The run that opened an attempt, for messages.
SELECT dag_id, run_id FROM lockstep.run
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND attempt = %(attempt)s ORDER BY started_at DESC LIMIT 1

-- name: renew_lease
-- Never shortens the lease: another task of the attempt may wait for longer.
UPDATE lockstep.epoch SET lease_until = greatest(lease_until, now() + %(lease)s)
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND attempt = %(attempt)s RETURNING attempt

-- name: find_lease
-- The active lease, if any.
SELECT lease_until FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND lease_until > now()

-- name: count_in_flight
-- Originals that are not published, for max_in_flight.
SELECT count(*) AS in_flight FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') AND state <> 'published' AND generation = 0

-- name: count_attempts
-- The ordinal of an attempt among those opened by begin, and whether begin opened it: other roles' attempts have no owner.
SELECT count(DISTINCT attempt) AS ordinal, coalesce(bool_or(attempt = %(attempt)s), false) AS by_begin FROM lockstep.transition
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink IS NULL AND role = 'begin' AND attempt <= %(attempt)s

-- name: take_token
-- The inserted row makes the token durable.
INSERT INTO lockstep.execution (pipeline, epoch, sink, attempt, role, actor)
VALUES (%(pipeline)s, %(epoch)s, %(sink)s, %(attempt)s, %(role)s, %(actor)s) RETURNING token

-- name: advance_token_sequence
-- Skips tokens that a rebuilt or restored ledger must not issue again.
SELECT max(nextval('lockstep.token')) FROM generate_series(1, %(count)s)

-- name: start_execution
-- The youngest execution of prepare: older ones can't vote any more, and their votes no longer count.
UPDATE lockstep.participant SET execution = %(token)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (execution IS NULL OR execution < %(token)s)
RETURNING sink

-- name: find_own_execution
-- Executions of an attempt have higher tokens, so only the newest ones are scanned.
SELECT token FROM lockstep.execution
WHERE token > %(attempt)s AND pipeline = %(pipeline)s AND epoch = %(epoch)s
  AND attempt = %(attempt)s AND role = %(role)s AND actor = %(actor)s
ORDER BY token DESC LIMIT 1

-- name: find_executions
-- An object with the token of an attempt belongs to another ledger. In a rebuilt ledger only the tokens of old executions
-- are known.
SELECT token, sink IS NOT NULL OR attempt IS NOT NULL OR (role = 'operator' AND EXISTS (
    SELECT FROM lockstep.pipeline_change WHERE pipeline = %(pipeline)s AND change = 'rebuilt')) AS by_execution
FROM lockstep.execution WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND token = ANY(%(tokens)s)

-- name: find_claims
-- The last claim of each path; `exclude`: epochs whose claims are ignored.
SELECT c.* FROM unnest(%(paths)s::text[]) AS w (path) CROSS JOIN LATERAL (
    SELECT path, starts, ends, size, mtime_ns, digest FROM lockstep.claim
    WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = w.path AND epoch <> ALL(%(exclude)s::bigint[])
    ORDER BY starts DESC LIMIT 1
) c

-- name: find_own_claims
-- Paths that the given epochs claimed.
SELECT DISTINCT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s::text[]) AND epoch = ANY(%(own)s::bigint[])

-- name: find_any_claim
-- Whether the pipeline claimed any file. ORDER BY makes the planner use the index instead of scanning other pipelines' claims.
SELECT FROM lockstep.claim WHERE pipeline = %(pipeline)s ORDER BY pipeline, source, path, starts LIMIT 1

-- name: find_claimed_heads
-- Growing files that begin like a new file: it may be a renamed one.
SELECT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND head = ANY(%(heads)s::text[]) AND epoch <> ALL(%(exclude)s::bigint[])

-- name: list_unclaimed_paths
-- Files without any claim.
SELECT path FROM unnest(%(paths)s::text[]) AS path
EXCEPT
SELECT path FROM lockstep.claim
WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = ANY(%(paths)s::text[])

-- name: find_conflicting_claims
-- Impossible claims: a whole file of which a part is claimed, or a range that does not start where the last one ended.
SELECT w.path, w.starts, c.epoch, c.ends
FROM unnest(%(paths)s::text[], %(starts)s::bigint[], %(ends)s::bigint[]) AS w (path, starts, ends)
LEFT JOIN LATERAL (
    SELECT epoch, coalesce(ends, -1) AS ends FROM lockstep.claim
    WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = w.path ORDER BY starts DESC LIMIT 1
) c ON true
WHERE CASE WHEN w.ends IS NULL THEN c.epoch IS NOT NULL ELSE coalesce(c.ends, 0) <> w.starts END
ORDER BY w.path LIMIT 3

-- name: claim_files
-- Arrays as text literals, which the server parses faster than array constructors.
INSERT INTO lockstep.claim (pipeline, source, path, starts, ends, size, mtime_ns, digest, head, epoch)
SELECT
    %(pipeline)s, %(source)s, w.path, w.starts, w.ends, w.size, w.mtime_ns, nullif(w.digest, ''), nullif(w.head, ''), %(epoch)s
FROM unnest(%(paths)s::text[], %(starts)s::bigint[], %(ends)s::bigint[], %(sizes)s::bigint[], %(mtimes)s::bigint[], %(digests)s::text[],
    %(heads)s::text[]) AS w (path, starts, ends, size, mtime_ns, digest, head)

-- name: release_claims
-- Of a replanned epoch, or a void generation: the files can be claimed again.
DELETE FROM lockstep.claim WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s
