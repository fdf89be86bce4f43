UPDATE lockstep.untold SET missed_at = now()
WHERE pipeline = %(pipeline)s AND sink = %(sink)s AND epoch = ANY (%(epochs)s) AND missed_at IS NULL
