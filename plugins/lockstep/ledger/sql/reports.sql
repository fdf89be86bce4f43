-- Reads of status, the web pages and metrics.

-- name: list_epochs
-- The oldest `unfinished` unfinished epochs (null: all), and the newest below number `before` (null: all); with the number of
-- attempts, the last run, and the predecessor that a cursor epoch may wait for. `brief` omits the plan, which may name ten
-- thousand files, and all of the summary but row counts. (LIMIT 1 avoids a scan of all epochs if statistics expect many
-- unfinished ones.)
SELECT e.pipeline, e.id, e.span, e.state, e.attempt, e.owner_dag, e.owner_run, e.wal, e.manifest_hash, e.code_version,
       e.reason, e.planned_at, e.based_on, e.restaged_wal, e.restaged_hash, e.reordered, e.root, e.generation, e.replaces,
       e.replaces_to, e.restate_reason, e.restores, CASE WHEN NOT %(brief)s THEN e.plan END AS plan,
       CASE WHEN NOT %(brief)s THEN e.summary ELSE jsonb_build_object('outputs', coalesce((
           SELECT jsonb_object_agg(key, jsonb_build_object('rows', value -> 'rows')) FILTER (WHERE value ? 'rows')
           FROM jsonb_each(e.summary -> 'outputs')), '{}')) END AS summary,
       now() - e.changed_at AS age, now() - e.attempted_at AS attempt_age,
       e.lease_until IS NOT NULL AND e.lease_until > now() AS leased,
       now() - coalesce(e.lease_until, e.attempted_at) AS silence,
       (SELECT count(DISTINCT t.attempt) FROM lockstep.transition t
        WHERE t.pipeline = e.pipeline AND t.epoch = e.id AND t.sink IS NULL AND t.role = 'begin') AS attempts,
       r.dag_id AS last_dag, r.run_id AS last_run, b.id AS before_id, b.state AS before_state, to_jsonb(v) AS verdict
FROM unnest(%(pipelines)s::text[]) p (name)
CROSS JOIN LATERAL (
    (SELECT id FROM lockstep.epoch
     WHERE pipeline = p.name AND (%(before)s::bigint IS NULL OR id < %(before)s) ORDER BY id DESC LIMIT %(limit)s)
    UNION
    (SELECT id FROM lockstep.epoch
     WHERE pipeline = p.name AND state NOT IN ('cleaned', 'replaced', 'void') ORDER BY id LIMIT %(unfinished)s)
) i
CROSS JOIN LATERAL (SELECT * FROM lockstep.epoch WHERE pipeline = p.name AND id = i.id LIMIT 1) e
LEFT JOIN LATERAL (
    SELECT dag_id, run_id FROM lockstep.run WHERE pipeline = e.pipeline AND epoch = e.id ORDER BY started_at DESC LIMIT 1
) r ON true
LEFT JOIN LATERAL (
    SELECT * FROM lockstep.verdict WHERE (pipeline, epoch, manifest_hash) = (e.pipeline, e.id, e.manifest_hash)
) v ON true
LEFT JOIN LATERAL (
    SELECT id, state FROM lockstep.epoch
    WHERE e.span IS NULL AND e.state IN ('planned', 'staged', 'committed')
      AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
      AND pipeline = e.pipeline AND id < CASE WHEN e.replaces_to IS NULL THEN e.id ELSE e.replaces END
      AND state NOT IN ('replaced', 'void') AND (generation = 0 OR replaces_to IS NOT NULL) ORDER BY id DESC LIMIT 1
) b ON true
ORDER BY e.pipeline, e.id DESC

-- name: list_timeline
-- The newest `limit` epochs below number `before` (null: all).
SELECT e.id, lower(e.span) AS start, upper(e.span) AS "end", e.state,
       (SELECT sum((value ->> 'rows')::bigint) FROM jsonb_each(e.summary -> 'outputs'))::bigint AS rows
FROM lockstep.epoch e
WHERE e.pipeline = %(pipeline)s AND (%(before)s::bigint IS NULL OR e.id < %(before)s)
ORDER BY e.id DESC LIMIT %(limit)s

-- name: list_transitions
-- The history of one epoch.
SELECT sink, source_state, target_state, attempt, token, role, actor, reason, at
FROM lockstep.transition WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s ORDER BY id

-- name: write_note
-- Records an event without a transition: a repair, a discarded seal, a manual statement.
SELECT lockstep.write_transition(%(pipeline)s, %(epoch)s, %(sink)s, %(state)s, %(state)s, %(attempt)s, %(token)s)

-- name: find_last_note
-- The last history entry of a sink's part in an epoch.
SELECT id, clock_timestamp() - at AS age, token, role, actor, reason FROM lockstep.transition
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s ORDER BY id DESC LIMIT 1

-- name: count_states
-- Finished epochs below a number come from finished_rollup; the replaced ones among them are subtracted. See count_finished.
SELECT p.name AS pipeline, s.state, sum(s.epochs)::bigint AS epochs
FROM unnest(%(pipelines)s::text[]) p (name)
LEFT JOIN lockstep.finished_rollup f ON f.pipeline = p.name
CROSS JOIN LATERAL (
    SELECT count(*) AS epochs FROM lockstep.epoch WHERE pipeline = p.name AND id < f.below_epoch AND state = 'replaced'
) r
CROSS JOIN LATERAL (
    SELECT 'cleaned' AS state, f.cleaned - r.epochs AS epochs
    UNION ALL SELECT 'replaced', r.epochs
    UNION ALL SELECT 'void', f.void
    UNION ALL SELECT state, count(*) FROM lockstep.epoch
    WHERE pipeline = p.name AND id >= coalesce(f.below_epoch, 0) GROUP BY state
) s
WHERE s.epochs > 0 GROUP BY p.name, s.state ORDER BY p.name, s.state

-- name: count_finished
-- Adds finished epochs up to the first unfinished one to finished_rollup. Numbers are dense and visible in order, so no lower
-- one appears later. If a concurrent count changed `below_epoch`, this one does nothing.
WITH since AS (
    SELECT coalesce((SELECT below_epoch FROM lockstep.finished_rollup WHERE pipeline = %(pipeline)s), 0) AS id
), until AS (
    SELECT coalesce(
        (SELECT min(id) FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void')),
        (SELECT max(id) + 1 FROM lockstep.epoch WHERE pipeline = %(pipeline)s)) AS id
)
INSERT INTO lockstep.finished_rollup AS f (pipeline, below_epoch, cleaned, void, covered)
SELECT %(pipeline)s, until.id, count(*) FILTER (WHERE e.state IN ('cleaned', 'replaced')), count(*) FILTER (WHERE e.state = 'void'),
       coalesce(range_agg(e.span), '{}')
FROM since, until, lockstep.epoch e
WHERE e.pipeline = %(pipeline)s AND e.id >= since.id AND e.id < until.id GROUP BY until.id
ON CONFLICT (pipeline) DO UPDATE
    SET below_epoch = excluded.below_epoch, cleaned = f.cleaned + excluded.cleaned, void = f.void + excluded.void,
        covered = f.covered + excluded.covered
    WHERE f.below_epoch = (SELECT id FROM since)

-- name: find_gaps
-- Gaps between the first interval and the last, at most `limit` of them (null: all). Void epochs are no gaps: an operator gave
-- them up.
SELECT p.name AS pipeline, lower(gap) AS start, upper(gap) AS "end"
FROM unnest(%(pipelines)s::text[]) p (name)
LEFT JOIN lockstep.finished_rollup f ON f.pipeline = p.name
CROSS JOIN LATERAL (
    SELECT coalesce(f.covered, '{}') + coalesce(range_agg(span), '{}') AS spans FROM lockstep.epoch
    WHERE pipeline = p.name AND id >= coalesce(f.below_epoch, 0)
) c
CROSS JOIN LATERAL (
    SELECT gap FROM unnest(tstzmultirange(range_merge(c.spans)) - c.spans) AS gap ORDER BY gap LIMIT %(limit)s
) h
ORDER BY 1, 2

-- name: find_verified
-- The last epoch up to which all sinks are verified, and what blocks the next one: an unpublished or unproven epoch.
-- One index lookup each, however many epochs there are.
SELECT p.name AS pipeline, coalesce(least(open.id, unverified.epoch) - 1, last.id, 0) AS through,
       unverified.epoch, unverified.sink, unverified.unproven
FROM unnest(%(pipelines)s::text[]) p (name)
LEFT JOIN LATERAL (
    SELECT id FROM lockstep.epoch WHERE pipeline = p.name ORDER BY id DESC LIMIT 1
) last ON true
LEFT JOIN LATERAL (
    SELECT id FROM lockstep.epoch
    WHERE pipeline = p.name AND state IN ('planned', 'staged', 'committed') AND state NOT IN ('cleaned', 'replaced', 'void')
    ORDER BY id LIMIT 1
) open ON true
LEFT JOIN LATERAL (
    SELECT q.epoch, q.sink, q.unproven FROM lockstep.participant q
    JOIN lockstep.epoch e ON e.pipeline = q.pipeline AND e.id = q.epoch AND e.state NOT IN ('planned', 'staged', 'void')
    WHERE q.pipeline = p.name AND q.unproven IS NOT NULL ORDER BY q.epoch, q.sink LIMIT 1
) unverified ON true

-- name: list_freshness
-- The newest epoch published in every sink, and the age of its data: of intervals, since the latest end; of others, since the
-- range was frozen. Finished epochs come from finished_rollup.
SELECT p.name AS pipeline, s.id AS epoch, greatest(now() - CASE WHEN s.span IS NULL THEN o.planned_at ELSE greatest(
    (SELECT upper(f.covered) FROM lockstep.finished_rollup f WHERE f.pipeline = p.name),
    (SELECT max(upper(e.span)) FROM lockstep.epoch e
     WHERE e.pipeline = p.name AND e.state IN ('published', 'cleaned', 'replaced')
       AND e.id >= coalesce((SELECT below_epoch FROM lockstep.finished_rollup f WHERE f.pipeline = p.name), 0))
) END, interval '0') AS lag
FROM unnest(%(pipelines)s::text[]) p (name)
CROSS JOIN LATERAL (
    SELECT id, span, planned_at FROM lockstep.epoch
    WHERE pipeline = p.name AND state IN ('published', 'cleaned') ORDER BY id DESC LIMIT 1
) s
LEFT JOIN LATERAL (  -- a generation ends where the replaced one did
    SELECT planned_at FROM lockstep.epoch
    WHERE s.span IS NULL AND pipeline = p.name AND state IN ('published', 'cleaned', 'replaced') AND generation = 0
    ORDER BY id DESC LIMIT 1
) o ON true

-- name: list_epoch_times
-- Row counts, sinks and the last time of each state. For staged, only its own seal counts: a new attempt keeps the state.
SELECT e.pipeline, e.id AS epoch, s.sinks, t.planned, t.staged, t.committed, t.published, t.cleaned, (
    SELECT jsonb_object_agg(key, value -> 'rows') FILTER (WHERE value ? 'rows') FROM jsonb_each(e.summary -> 'outputs')
) AS rows
FROM unnest(%(pipelines)s::text[], %(epochs)s::bigint[]) w (pipeline, epoch)
CROSS JOIN LATERAL (
    SELECT pipeline, id, summary FROM lockstep.epoch WHERE pipeline = w.pipeline AND id = w.epoch
) e
CROSS JOIN LATERAL (
    SELECT array_agg(sink ORDER BY sink) AS sinks FROM lockstep.participant WHERE pipeline = w.pipeline AND epoch = w.epoch
) s
CROSS JOIN LATERAL (
    SELECT min(at) FILTER (WHERE target_state = 'planned') AS planned,
           max(at) FILTER (WHERE target_state = 'staged' AND source_state = 'planned') AS staged,
           max(at) FILTER (WHERE target_state = 'committed') AS committed,
           max(at) FILTER (WHERE target_state = 'published') AS published,
           max(at) FILTER (WHERE target_state = 'cleaned') AS cleaned
    FROM lockstep.transition WHERE pipeline = w.pipeline AND epoch = w.epoch AND sink IS NULL
) t
ORDER BY e.pipeline

-- name: list_history_partitions
-- Partitions of the history, oldest first; the last one is written to. The first has no start, the last no end.
SELECT name, starts, ends, pg_total_relation_size(oid) AS bytes
FROM (
    SELECT c.oid, c.relname AS name,
           substring(b.bounds FROM 'FROM \(''([^'']+)''\)')::timestamptz AS starts,
           substring(b.bounds FROM 'TO \(''([^'']+)''\)')::timestamptz AS ends
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bounds) b
    WHERE i.inhparent = 'lockstep.transition'::regclass
) p ORDER BY starts NULLS FIRST

-- name: find_unfinished_in_history
-- An unfinished epoch with history in this partition, which then can't be dropped.
SELECT e.pipeline, e.id FROM lockstep.epoch e
WHERE e.state NOT IN ('cleaned', 'replaced', 'void')
  AND EXISTS (SELECT FROM {} t WHERE t.pipeline = e.pipeline AND t.epoch = e.id)
ORDER BY e.pipeline, e.id LIMIT 1
