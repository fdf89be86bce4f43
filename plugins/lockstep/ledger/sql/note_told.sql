DELETE FROM lockstep.untold WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = ANY (%(sinks)s)
