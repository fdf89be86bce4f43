SELECT name, identity, last_epoch, hold, forgotten_at, forgotten_by, forgotten_why FROM lockstep.pipeline WHERE name = %(pipeline)s
