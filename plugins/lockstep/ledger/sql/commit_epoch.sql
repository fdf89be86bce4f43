-- The decision. Runs under the row lock of lock_epoch, after this attempt's votes were counted in a later statement.
UPDATE lockstep.epoch SET state = 'committed', lease_until = NULL
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'staged' AND attempt = %(attempt)s
RETURNING *
