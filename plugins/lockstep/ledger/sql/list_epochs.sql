-- The oldest `unfinished` that are unfinished (null: all of them), and the youngest below number `before` (null: of all);
-- each with the number of its attempts and the run that came last, and of a cursor's that may wait for it the epoch that
-- it follows. `brief`: without the plan, and of what the seal recorded only how many rows an output has. A plan may name
-- ten thousand files: a list shows none of them. (LIMIT 1: or statistics that expect many unfinished epochs have all read.)
SELECT e.pipeline, e.id, e.span, e.state, e.attempt, e.owner_dag, e.owner_run, e.wal, e.manifest_hash, e.code_version,
       e.reason, e.planned_at, e.based_on, e.restaged_wal, e.restaged_hash, e.reordered, e.root, e.generation, e.replaces,
       e.replaces_to, e.restated_because, e.restores, CASE WHEN NOT %(brief)s THEN e.plan END AS plan,
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
