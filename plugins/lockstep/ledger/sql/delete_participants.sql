DELETE FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND state = 'pending'
