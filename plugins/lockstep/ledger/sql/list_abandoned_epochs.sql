-- Undecided, nobody at it, and older than any DAG's own retries: recover may raise its attempt.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged')
  AND (lease_until IS NULL OR lease_until < now()) AND attempted_at < now() - %(hold)s
ORDER BY id
