-- Undecided, nobody at it, and no sign of life for longer than any DAG's own retries: recover may raise its attempt. What
-- audits hold waits for a person, and has nothing that could be rolled back.
SELECT * FROM lockstep.epoch e
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND (lease_until IS NULL OR lease_until < now())
  AND greatest(attempted_at, changed_at, lease_until) < now() - %(hold)s
  AND NOT EXISTS (
      SELECT FROM lockstep.verdict v
      WHERE (v.pipeline, v.epoch, v.manifest_hash, v.outcome) = (e.pipeline, e.id, e.manifest_hash, 'held')
  )
ORDER BY id
