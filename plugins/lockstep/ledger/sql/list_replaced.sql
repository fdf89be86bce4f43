-- Whose place an epoch takes: one, or all of a cursor's from one on that followed one another when it was planned.
SELECT r.* FROM lockstep.epoch e
JOIN lockstep.epoch r ON r.pipeline = e.pipeline AND r.id BETWEEN e.replaces AND coalesce(e.replaces_to, e.replaces)
WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s
  AND (e.replaces_to IS NULL OR r.state <> 'void' AND (r.generation = 0 OR r.replaces_to IS NOT NULL) AND NOT EXISTS (
      SELECT FROM lockstep.epoch s
      WHERE s.pipeline = r.pipeline AND s.id > r.id AND s.id < e.id AND s.replaces_to IS NOT NULL
        AND s.state NOT IN ('planned', 'staged', 'void') AND r.id BETWEEN s.replaces AND s.replaces_to))
ORDER BY r.id
