UPDATE lockstep.participant SET state = 'published', publication = %(publication)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' AND token = %(token)s
RETURNING sink
