SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned', 'replaced') ORDER BY id DESC LIMIT 1
