-- Where a cursor source ended last before an epoch: what takes the place of others ends where these did. Void epochs count: their ranges were given up, not handed on. A snapshot ends nowhere.
SELECT e.id, e.plan -> 'sources' -> s.source -> 'end' AS "end"
FROM lockstep.planned_source s
CROSS JOIN LATERAL (
    SELECT id, plan FROM lockstep.epoch
    WHERE pipeline = s.pipeline AND id <= s.last_epoch AND id < %(epoch)s AND generation = 0 AND plan -> 'sources' ? s.source
      AND NOT plan -> 'sources' -> s.source ? 'snapshot'
    ORDER BY id DESC LIMIT 1
) e
WHERE s.pipeline = %(pipeline)s AND s.source = %(source)s
