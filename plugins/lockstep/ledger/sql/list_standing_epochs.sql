SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state <> 'void' ORDER BY id
