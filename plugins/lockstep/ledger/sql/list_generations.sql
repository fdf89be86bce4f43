-- The original and what was to take its place, void ones too.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(root)s
UNION ALL (SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND root = %(root)s ORDER BY id)
