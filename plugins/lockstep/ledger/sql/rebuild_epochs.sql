INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan, planned_at, root, generation, replaces, restated_because)
SELECT %(pipeline)s, r.id, CASE WHEN r.starts IS NOT NULL THEN tstzrange(r.starts, r.ends) END, 'planned', r.attempt, r.plan,
       coalesce(r.planned_at, now()), r.root, r.generation, r.replaces, r.because
FROM jsonb_to_recordset(%(epochs)s) AS r (id bigint, starts timestamptz, ends timestamptz, attempt bigint, plan jsonb,
                                          planned_at timestamptz, root bigint, generation int, replaces bigint, because text)
ORDER BY r.id
