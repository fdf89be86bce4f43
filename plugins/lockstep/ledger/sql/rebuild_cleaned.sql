UPDATE lockstep.epoch SET state = 'cleaned'
WHERE pipeline = %(pipeline)s AND id = ANY(%(epochs)s) AND state = 'published'
