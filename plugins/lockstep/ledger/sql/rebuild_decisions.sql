UPDATE lockstep.epoch SET state = 'committed' WHERE pipeline = %(pipeline)s AND state = 'staged'
