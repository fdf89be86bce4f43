SELECT FROM lockstep.claim WHERE pipeline = %(pipeline)s LIMIT 1
