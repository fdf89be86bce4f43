-- Of epochs up to a number; by the order of an index: without one, every epoch since would be read through.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND replaces <= %(epoch)s AND root IS NOT NULL
  AND state NOT IN ('planned', 'staged', 'void')
ORDER BY id DESC LIMIT 1
