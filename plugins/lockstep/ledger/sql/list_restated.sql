-- Of lives of a range, void ones left out, why they were begun, and why runs were to restate when they got them.
SELECT e.*, t.told
FROM lockstep.epoch e
CROSS JOIN LATERAL (
    SELECT e.restated_because AS told, e.planned_at AS at
    UNION ALL SELECT r.restate, r.started_at FROM lockstep.run r WHERE (r.pipeline, r.epoch) = (e.pipeline, e.id)
) t
WHERE e.pipeline = %(pipeline)s AND (e.id = %(root)s OR e.root = %(root)s) AND e.state <> 'void' AND t.told IS NOT NULL
ORDER BY e.id, t.at
