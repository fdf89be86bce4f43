UPDATE lockstep.deployment SET id = %(deployment)s WHERE id <> %(deployment)s
