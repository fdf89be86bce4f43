-- The decided epoch that has taken its place.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND root = %(root)s AND replaces = %(epoch)s AND state NOT IN ('planned', 'staged', 'void')
