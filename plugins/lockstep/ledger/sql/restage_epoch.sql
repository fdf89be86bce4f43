-- Only rows that are the sealed ones, by number and digest.
UPDATE lockstep.epoch SET restaged_wal = %(wal)s, restaged_hash = %(hash)s, reordered = %(reordered)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'committed' AND wal <> %(wal)s
  AND summary -> 'digest_version' = %(summary)s::jsonb -> 'digest_version'
  AND NOT EXISTS (
      SELECT FROM jsonb_each(summary -> 'outputs') AS sealed FULL JOIN jsonb_each(%(summary)s::jsonb -> 'outputs') AS found USING (key)
      WHERE (sealed.value -> 'rows', sealed.value -> 'digest') IS DISTINCT FROM (found.value -> 'rows', found.value -> 'digest')
  )
  AND NOT EXISTS (
      SELECT FROM jsonb_each(coalesce(summary -> 'quarantined', '{}')) AS sealed
      FULL JOIN jsonb_each(coalesce(%(summary)s::jsonb -> 'quarantined', '{}')) AS found USING (key)
      WHERE (sealed.value -> 'rows', sealed.value -> 'digest') IS DISTINCT FROM (found.value -> 'rows', found.value -> 'digest')
  )
RETURNING *
