-- Not a void one.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND root = %(root)s AND generation = %(generation)s AND state <> 'void'
