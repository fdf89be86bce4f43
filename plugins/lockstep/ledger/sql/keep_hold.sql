UPDATE lockstep.pipeline SET hold = %(hold)s WHERE name = %(pipeline)s AND hold <> %(hold)s
