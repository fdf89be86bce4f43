-- Where a cursor source goes on after an epoch.
SELECT id, plan -> 'sources' -> %(source)s -> 'start' AS start FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND generation = 0 AND plan -> 'sources' ? %(source)s
  AND NOT plan -> 'sources' -> %(source)s ? 'snapshot'
ORDER BY id LIMIT 1
