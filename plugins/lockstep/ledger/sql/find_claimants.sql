-- Claims that can't be: a whole file that somebody has a part of, a range that isn't the next one of its file.
SELECT w.path, w.starts, c.epoch, c.ends
FROM unnest(%(paths)s::text[], %(starts)s::bigint[], %(ends)s::bigint[]) AS w (path, starts, ends)
LEFT JOIN LATERAL (
    SELECT epoch, coalesce(ends, -1) AS ends FROM lockstep.claim
    WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = w.path ORDER BY starts DESC LIMIT 1
) c ON true
WHERE CASE WHEN w.ends IS NULL THEN c.epoch IS NOT NULL ELSE coalesce(c.ends, 0) <> w.starts END
ORDER BY w.path LIMIT 3
