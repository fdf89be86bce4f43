-- An epoch of this partition that isn't finished: its history stays.
SELECT e.pipeline, e.id FROM lockstep.epoch e
WHERE e.state NOT IN ('cleaned', 'replaced', 'void')
  AND EXISTS (SELECT FROM {} t WHERE t.pipeline = e.pipeline AND t.epoch = e.id)
ORDER BY e.pipeline, e.id LIMIT 1
