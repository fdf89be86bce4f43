-- The decided epoch that has taken its place, alone or with others.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND root = %(root)s AND replaces = %(epoch)s AND state NOT IN ('planned', 'staged', 'void')
UNION ALL (
    SELECT * FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND replaces_to IS NOT NULL AND state NOT IN ('planned', 'staged', 'void')
      AND root <> %(root)s AND %(epoch)s BETWEEN replaces AND replaces_to
)
ORDER BY id LIMIT 1
