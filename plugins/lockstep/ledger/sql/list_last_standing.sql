-- An epoch of a cursor and those that it follows, the youngest first. One that takes the place of several follows the one
-- before these, however many they are: so each step is one look into an index.
WITH RECURSIVE line AS (
    SELECT id, coalesce(CASE WHEN replaces_to IS NOT NULL THEN replaces END, id) AS above, 1 AS place
    FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s
    UNION ALL
    SELECT b.id, coalesce(CASE WHEN b.replaces_to IS NOT NULL THEN b.replaces END, b.id), line.place + 1
    FROM line CROSS JOIN LATERAL (
        SELECT id, replaces, replaces_to FROM lockstep.epoch
        WHERE pipeline = %(pipeline)s AND id < line.above AND state NOT IN ('replaced', 'void')
          AND (generation = 0 OR replaces_to IS NOT NULL)
        ORDER BY id DESC LIMIT 1
    ) b
    WHERE line.place < %(limit)s
)
SELECT e.* FROM line JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = line.id ORDER BY e.id DESC
