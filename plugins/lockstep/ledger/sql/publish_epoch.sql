UPDATE lockstep.epoch e SET state = 'published'
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'committed'
  AND NOT EXISTS (SELECT FROM lockstep.participant p
                  WHERE p.pipeline = e.pipeline AND p.epoch = e.id AND p.state <> 'published')
RETURNING *
