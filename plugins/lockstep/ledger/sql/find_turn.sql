-- Whoever voted in this sink without a turn, before there were turns or unique keys, counts too.
SELECT * FROM lockstep.participant
WHERE pipeline = %(pipeline)s AND epoch <> %(epoch)s AND state <> 'published'
  AND (turn OR (sink = %(sink)s AND state = 'prepared'))
ORDER BY epoch LIMIT 1
