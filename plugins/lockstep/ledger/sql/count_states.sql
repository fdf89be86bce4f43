SELECT state, count(*) AS epochs FROM lockstep.epoch WHERE pipeline = %(pipeline)s GROUP BY state ORDER BY state
