UPDATE lockstep.epoch SET state = 'cleaned' WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'published' RETURNING *
