-- All that are unfinished, and the youngest.
SELECT e.*, now() - e.changed_at AS age, now() - e.attempted_at AS attempt_age,
       e.lease_until IS NOT NULL AND e.lease_until > now() AS leased,
       now() - coalesce(e.lease_until, e.attempted_at) AS silence
FROM lockstep.epoch e
WHERE e.pipeline = %(pipeline)s AND e.id IN (
    (SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s ORDER BY id DESC LIMIT %(limit)s)
    UNION SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'void'))
ORDER BY e.id DESC
