-- See find_predecessor.sql. What was replaced is shown by every sink, and so is what an epoch that replaces several follows.
SELECT p.* FROM lockstep.participant p JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.epoch < %(epoch)s AND p.sink = %(sink)s
  AND e.state NOT IN ('replaced', 'void') AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
ORDER BY p.epoch DESC LIMIT 1
