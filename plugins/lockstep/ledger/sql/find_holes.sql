-- What is missing between the first interval and the last, the first `most` of it (null: all). A void epoch is no hole: a
-- person gave it up.
SELECT p.name AS pipeline, lower(hole) AS start, upper(hole) AS "end"
FROM unnest(%(pipelines)s::text[]) p (name)
LEFT JOIN lockstep.finished f ON f.pipeline = p.name
CROSS JOIN LATERAL (
    SELECT coalesce(f.covered, '{}') + coalesce(range_agg(span), '{}') AS spans FROM lockstep.epoch
    WHERE pipeline = p.name AND id >= coalesce(f.below, 0)
) c
CROSS JOIN LATERAL (
    SELECT hole FROM unnest(tstzmultirange(range_merge(c.spans)) - c.spans) AS hole ORDER BY hole LIMIT %(most)s
) h
ORDER BY 1, 2
