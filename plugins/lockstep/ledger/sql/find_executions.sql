SELECT token FROM lockstep.execution WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND token = ANY(%(tokens)s)
