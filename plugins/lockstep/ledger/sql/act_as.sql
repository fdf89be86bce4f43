SELECT set_config('lockstep.role', %(role)s, true)
