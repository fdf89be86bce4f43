-- What is finished below a number was counted once, what was replaced since among what was cleaned; see count_finished.
SELECT p.name AS pipeline, s.state, sum(s.epochs)::bigint AS epochs
FROM unnest(%(pipelines)s::text[]) p (name)
LEFT JOIN lockstep.finished f ON f.pipeline = p.name
CROSS JOIN LATERAL (
    SELECT count(*) AS epochs FROM lockstep.epoch WHERE pipeline = p.name AND id < f.below AND state = 'replaced'
) r
CROSS JOIN LATERAL (
    SELECT 'cleaned' AS state, f.cleaned - r.epochs AS epochs
    UNION ALL SELECT 'replaced', r.epochs
    UNION ALL SELECT 'void', f.void
    UNION ALL SELECT state, count(*) FROM lockstep.epoch
    WHERE pipeline = p.name AND id >= coalesce(f.below, 0) GROUP BY state
) s
WHERE s.epochs > 0 GROUP BY p.name, s.state ORDER BY p.name, s.state
