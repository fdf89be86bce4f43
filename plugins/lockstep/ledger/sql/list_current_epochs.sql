-- Of each interval that meets a span the last decided life, or the original; by time.
SELECT e.* FROM (
    SELECT pipeline, id, span FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND span && tstzrange(%(start)s, %(end)s) AND generation = 0
) r
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT * FROM lockstep.epoch WHERE pipeline = r.pipeline AND id = r.id
        UNION ALL SELECT * FROM lockstep.epoch
        WHERE pipeline = r.pipeline AND root = r.id AND state NOT IN ('planned', 'staged', 'void')
    ) l ORDER BY l.generation DESC LIMIT 1
) e
ORDER BY lower(r.span)
