-- The last decided life of the interval's epoch, or the original.
SELECT e.* FROM (
    SELECT pipeline, id FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND span && tstzrange(%(start)s, %(end)s) AND generation = 0 ORDER BY id LIMIT 1
) r
CROSS JOIN LATERAL (
    SELECT * FROM lockstep.epoch WHERE pipeline = r.pipeline AND id = r.id
    UNION ALL SELECT * FROM lockstep.epoch
    WHERE pipeline = r.pipeline AND root = r.id AND state NOT IN ('planned', 'staged', 'void')
) e
ORDER BY e.generation DESC LIMIT 1
