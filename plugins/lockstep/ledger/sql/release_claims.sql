DELETE FROM lockstep.claim WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s
