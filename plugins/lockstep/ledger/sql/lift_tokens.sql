SELECT max(nextval('lockstep.token')) FROM generate_series(1, %(count)s)
