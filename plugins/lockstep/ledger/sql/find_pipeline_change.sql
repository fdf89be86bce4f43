SELECT found FROM lockstep.pipeline_change WHERE pipeline = %(pipeline)s AND change = %(change)s ORDER BY id DESC LIMIT 1
