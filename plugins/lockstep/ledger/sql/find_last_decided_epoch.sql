SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned') ORDER BY id DESC LIMIT 1
