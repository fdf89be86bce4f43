SELECT e.*, now() - e.changed_at AS age, now() - e.attempted_at AS attempt_age,
       e.lease_until IS NOT NULL AND e.lease_until > now() AS leased
FROM lockstep.epoch e WHERE e.pipeline = %(pipeline)s ORDER BY e.id DESC LIMIT %(limit)s
