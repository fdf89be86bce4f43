-- Of a cursor's, the end of their order.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned')
  AND (span IS NOT NULL OR generation = 0 OR replaces_to IS NOT NULL) ORDER BY id DESC LIMIT 1
