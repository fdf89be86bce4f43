SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'void') ORDER BY id
