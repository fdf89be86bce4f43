SELECT name, identity, last_epoch FROM lockstep.pipeline WHERE name = %(pipeline)s
