SELECT name, identity, last_epoch, hold FROM lockstep.pipeline WHERE name = %(pipeline)s
