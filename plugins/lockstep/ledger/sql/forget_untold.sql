DELETE FROM lockstep.untold WHERE pipeline = %(pipeline)s AND sink = %(sink)s AND epoch = ANY (%(epochs)s)
