-- The epoch that a cursor epoch follows: neither void ones count, nor those that were replaced, nor lives aside of the order.
-- One that takes the place of several follows the one before these.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state NOT IN ('replaced', 'void') AND (generation = 0 OR replaces_to IS NOT NULL)
  AND id < coalesce(
      (SELECT replaces FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND replaces_to IS NOT NULL),
      %(epoch)s)
ORDER BY id DESC LIMIT 1
