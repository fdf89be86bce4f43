UPDATE lockstep.epoch e SET state = 'published'
WHERE e.pipeline = %(pipeline)s AND e.state = 'committed'
  AND NOT EXISTS (SELECT FROM lockstep.participant p
                  WHERE p.pipeline = e.pipeline AND p.epoch = e.id AND p.state <> 'published')
