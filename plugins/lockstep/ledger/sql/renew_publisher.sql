-- Whoever publishes is at work. Nothing is decided by it: it only keeps a long publication from being called stuck.
UPDATE lockstep.participant SET lease_until = now() + %(lease)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared'
RETURNING sink
