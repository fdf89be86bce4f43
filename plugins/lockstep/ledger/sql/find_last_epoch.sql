SELECT e.* FROM lockstep.epoch e JOIN lockstep.pipeline p ON p.name = e.pipeline AND p.last_epoch = e.id
WHERE e.pipeline = %(pipeline)s
