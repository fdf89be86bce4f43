SELECT count(*) AS in_flight FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') AND state <> 'published' AND generation = 0
