SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s
