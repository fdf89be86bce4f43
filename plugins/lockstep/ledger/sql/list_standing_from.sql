-- A cursor's epochs from one on that follow one another now: none that is void, or replaced, or aside of the order.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id >= %(epoch)s AND state NOT IN ('replaced', 'void')
  AND (generation = 0 OR replaces_to IS NOT NULL)
ORDER BY id
