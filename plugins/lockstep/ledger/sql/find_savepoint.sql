SELECT savepoint, hash FROM lockstep.savepoint WHERE pipeline = %(pipeline)s
