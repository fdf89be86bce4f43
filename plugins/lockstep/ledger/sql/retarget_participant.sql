-- A person says that this target, as it is now, does not hold the epoch: publish goes there, from the WAL.
UPDATE lockstep.participant SET target_id = %(target_id)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' RETURNING sink
