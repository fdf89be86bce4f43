-- All that are unfinished, and the youngest; each with the number of its attempts and the run that came last.
SELECT e.*, now() - e.changed_at AS age, now() - e.attempted_at AS attempt_age,
       e.lease_until IS NOT NULL AND e.lease_until > now() AS leased,
       now() - coalesce(e.lease_until, e.attempted_at) AS silence,
       (SELECT count(DISTINCT t.attempt) FROM lockstep.transition t
        WHERE t.pipeline = e.pipeline AND t.epoch = e.id AND t.sink IS NULL AND t.role = 'begin') AS attempts,
       r.dag_id AS last_dag, r.run_id AS last_run
FROM lockstep.epoch e
LEFT JOIN LATERAL (
    SELECT dag_id, run_id FROM lockstep.run WHERE pipeline = e.pipeline AND epoch = e.id ORDER BY started_at DESC LIMIT 1
) r ON true
WHERE e.pipeline = %(pipeline)s AND e.id IN (
    (SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s ORDER BY id DESC LIMIT %(limit)s)
    UNION SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'void'))
ORDER BY e.id DESC
