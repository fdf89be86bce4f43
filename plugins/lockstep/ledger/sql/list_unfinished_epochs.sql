SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') ORDER BY id
