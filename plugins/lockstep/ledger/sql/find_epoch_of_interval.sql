SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND span && tstzrange(%(start)s, %(end)s) ORDER BY id LIMIT 1
