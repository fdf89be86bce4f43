SELECT *, now() - changed_at AS age FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s ORDER BY sink
