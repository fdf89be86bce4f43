-- Up to which epoch each pipeline's sinks are proven to show what was sealed, and what keeps the next one from it: the
-- first that isn't published, or the first that is, but unproven. A look into an index each, however many epochs there are.
SELECT p.name AS pipeline, coalesce(least(open.id, amiss.epoch) - 1, last.id, 0) AS through,
       amiss.epoch, amiss.sink, amiss.unproven
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
) amiss ON true
