SELECT *, now() - shown_at AS age FROM lockstep.untold WHERE pipeline = %(pipeline)s AND epoch = ANY (%(epochs)s)
