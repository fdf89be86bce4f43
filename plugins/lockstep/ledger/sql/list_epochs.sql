-- The oldest `unfinished` that are unfinished (null: all of them), and the youngest below number `before` (null: of all);
-- each with the number of its attempts and the run that came last, and of a cursor's that may wait for it the epoch that
-- it follows.
SELECT e.*, now() - e.changed_at AS age, now() - e.attempted_at AS attempt_age,
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
CROSS JOIN LATERAL (SELECT * FROM lockstep.epoch WHERE pipeline = p.name AND id = i.id) e
LEFT JOIN LATERAL (
    SELECT dag_id, run_id FROM lockstep.run WHERE pipeline = e.pipeline AND epoch = e.id ORDER BY started_at DESC LIMIT 1
) r ON true
LEFT JOIN LATERAL (
    SELECT * FROM lockstep.verdict WHERE (pipeline, epoch, manifest_hash) = (e.pipeline, e.id, e.manifest_hash)
) v ON true
LEFT JOIN LATERAL (
    SELECT id, state FROM lockstep.epoch
    WHERE e.span IS NULL AND e.state IN ('planned', 'staged', 'committed')
      AND pipeline = e.pipeline AND id < e.id AND state <> 'void' ORDER BY id DESC LIMIT 1
) b ON true
ORDER BY e.pipeline, e.id DESC
