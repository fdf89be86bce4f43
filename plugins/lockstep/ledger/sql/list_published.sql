-- What a sink has published, and no other epoch has taken the place of; without what stands by a person's word.
SELECT e.id, e.manifest_hash FROM lockstep.participant p
JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.sink = %(sink)s AND p.state = 'published' AND p.publication <> 'resolved'
  AND e.state IN ('committed', 'published', 'cleaned')
ORDER BY e.id
