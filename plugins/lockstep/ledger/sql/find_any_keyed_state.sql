SELECT FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND based_on IS NOT NULL
UNION ALL SELECT FROM lockstep.savepoint WHERE pipeline = %(pipeline)s LIMIT 1
