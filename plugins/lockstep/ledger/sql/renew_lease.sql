-- Never earlier: another task of the attempt may wait for longer.
UPDATE lockstep.epoch SET lease_until = greatest(lease_until, now() + %(lease)s)
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND attempt = %(attempt)s RETURNING attempt
