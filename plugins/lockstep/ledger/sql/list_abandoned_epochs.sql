-- Undecided, nobody at it, and no sign of life for longer than any DAG's own retries: recover may raise its attempt.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND (lease_until IS NULL OR lease_until < now())
  AND greatest(attempted_at, changed_at, lease_until) < now() - %(hold)s
ORDER BY id
