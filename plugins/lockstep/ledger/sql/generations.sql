-- Generations of a range: which epoch replaces which.

-- name: find_generation
-- A generation by number, unless it is void.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND root = %(root)s AND generation = %(generation)s AND state <> 'void'

-- name: list_generations
-- The original and its generations, including void ones.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(root)s
UNION ALL (SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND root = %(root)s ORDER BY id)

-- name: list_current_epochs
-- For each interval that overlaps a span, the last decided generation, or the original; by time.
SELECT e.* FROM (
    SELECT pipeline, id, span FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND span && tstzrange(%(start)s, %(end)s) AND generation = 0
) r
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT * FROM lockstep.epoch WHERE pipeline = r.pipeline AND id = r.id
        UNION ALL SELECT * FROM lockstep.epoch
        WHERE pipeline = r.pipeline AND root = r.id AND state NOT IN ('planned', 'staged', 'void')
    ) l ORDER BY l.generation DESC LIMIT 1
) e
ORDER BY lower(r.span)

-- name: list_replaced
-- The epochs that an epoch replaces: one, or the sequence of a cursor's epochs at the time it was planned.
SELECT r.* FROM lockstep.epoch e
JOIN lockstep.epoch r ON r.pipeline = e.pipeline AND r.id BETWEEN e.replaces AND coalesce(e.replaces_to, e.replaces)
WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s
  AND (e.replaces_to IS NULL OR r.state <> 'void' AND (r.generation = 0 OR r.replaces_to IS NOT NULL) AND NOT EXISTS (
      SELECT FROM lockstep.epoch s
      WHERE s.pipeline = r.pipeline AND s.id > r.id AND s.id < e.id AND s.replaces_to IS NOT NULL
        AND s.state NOT IN ('planned', 'staged', 'void') AND r.id BETWEEN s.replaces AND s.replaces_to))
ORDER BY r.id

-- name: list_restate_reasons
-- For each generation of a range that is not void, its reason and the reasons of all runs that worked for it.
SELECT e.*, t.restate_request
FROM lockstep.epoch e
CROSS JOIN LATERAL (
    SELECT e.restate_reason AS restate_request, e.planned_at AS at
    UNION ALL SELECT r.restate_reason, r.started_at FROM lockstep.run r WHERE (r.pipeline, r.epoch) = (e.pipeline, e.id)
) t
WHERE e.pipeline = %(pipeline)s AND (e.id = %(root)s OR e.root = %(root)s) AND e.state <> 'void' AND t.restate_request IS NOT NULL
ORDER BY e.id, t.at

-- name: find_successor
-- The decided epoch that replaced an epoch, alone or with others.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND root = %(root)s AND replaces = %(epoch)s AND state NOT IN ('planned', 'staged', 'void')
UNION ALL (
    SELECT * FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND replaces_to IS NOT NULL AND state NOT IN ('planned', 'staged', 'void')
      AND root <> %(root)s AND %(epoch)s BETWEEN replaces AND replaces_to
)
ORDER BY id LIMIT 1

-- name: find_last_successor
-- The newest decided generation that replaces an epoch up to a number. ORDER BY makes the planner use the index instead of
-- scanning all later epochs.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND replaces <= %(epoch)s AND root IS NOT NULL
  AND state NOT IN ('planned', 'staged', 'void')
ORDER BY id DESC LIMIT 1
