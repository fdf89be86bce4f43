-- Of each pipeline the newest epoch that every sink shows, and how long ago that ends which they show: of intervals the
-- latest of them, otherwise when the epoch's range was frozen. What is finished below a number was merged once.
SELECT p.name AS pipeline, s.id AS epoch, greatest(now() - CASE WHEN s.span IS NULL THEN o.planned_at ELSE greatest(
    (SELECT upper(f.covered) FROM lockstep.finished f WHERE f.pipeline = p.name),
    (SELECT max(upper(e.span)) FROM lockstep.epoch e
     WHERE e.pipeline = p.name AND e.state IN ('published', 'cleaned', 'replaced')
       AND e.id >= coalesce((SELECT below FROM lockstep.finished f WHERE f.pipeline = p.name), 0))
) END, interval '0') AS lag
FROM unnest(%(pipelines)s::text[]) p (name)
CROSS JOIN LATERAL (
    SELECT id, span, planned_at FROM lockstep.epoch
    WHERE pipeline = p.name AND state IN ('published', 'cleaned') ORDER BY id DESC LIMIT 1
) s
LEFT JOIN LATERAL (  -- a life that takes another's place ends where that one did
    SELECT planned_at FROM lockstep.epoch
    WHERE s.span IS NULL AND pipeline = p.name AND state IN ('published', 'cleaned', 'replaced') AND generation = 0
    ORDER BY id DESC LIMIT 1
) o ON true
