SELECT * FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s ORDER BY sink
