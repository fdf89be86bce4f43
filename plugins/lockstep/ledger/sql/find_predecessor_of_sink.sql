SELECT p.* FROM lockstep.participant p JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.epoch < %(epoch)s AND p.sink = %(sink)s AND e.state <> 'void'
ORDER BY p.epoch DESC LIMIT 1
