-- Looking up epochs.

-- name: find_epoch
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s

-- name: find_any_epoch
SELECT pipeline, id FROM lockstep.epoch LIMIT 1

-- name: find_any_keyed_state
-- By the order of an index: without one, the epochs of others would be read through.
(SELECT FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND based_on IS NOT NULL ORDER BY pipeline, id LIMIT 1)
UNION ALL SELECT FROM lockstep.savepoint WHERE pipeline = %(pipeline)s AND savepoint -> 'versions' <> '{}' LIMIT 1

-- name: find_epoch_before
-- Void ones too.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id < %(epoch)s ORDER BY id DESC LIMIT 1

-- name: find_epoch_of_interval
-- The last decided life of the interval's epoch, or the original.
SELECT e.* FROM (
    SELECT pipeline, id FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND span && tstzrange(%(start)s, %(end)s) AND generation = 0 ORDER BY id LIMIT 1
) r
CROSS JOIN LATERAL (
    SELECT * FROM lockstep.epoch WHERE pipeline = r.pipeline AND id = r.id
    UNION ALL SELECT * FROM lockstep.epoch
    WHERE pipeline = r.pipeline AND root = r.id AND state NOT IN ('planned', 'staged', 'void')
) e
ORDER BY e.generation DESC LIMIT 1

-- name: find_last_epoch
-- Not by its number: a person may have lifted the numbers above it.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s ORDER BY id DESC LIMIT 1

-- name: find_last_decided_epoch
-- Of a cursor's, the end of their order.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned')
  AND (span IS NOT NULL OR generation = 0 OR replaces_to IS NOT NULL) ORDER BY id DESC LIMIT 1

-- name: find_last_original
-- Of all, or of those below a number; void ones too. Not by its number, see find_last_epoch.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND generation = 0 AND (%(below)s::bigint IS NULL OR id < %(below)s) ORDER BY id DESC LIMIT 1

-- name: find_abandoned_epoch
-- A cursor pipeline's lowest undecided epoch that nobody is at: a new run takes it over before it plans another. What is to
-- take the place of others waits for who asked for that.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND generation = 0 AND (lease_until IS NULL OR lease_until < now())
ORDER BY id LIMIT 1

-- name: list_abandoned_epochs
-- Undecided, nobody at it, and no sign of life for longer than any DAG's own retries: recover may raise its attempt. What
-- audits hold waits for a person, and has nothing that could be rolled back.
SELECT * FROM lockstep.epoch e
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND (lease_until IS NULL OR lease_until < now())
  AND greatest(attempted_at, changed_at, lease_until) < now() - %(recovery_grace)s
  AND NOT EXISTS (
      SELECT FROM lockstep.verdict v
      WHERE (v.pipeline, v.epoch, v.manifest_hash, v.outcome) = (e.pipeline, e.id, e.manifest_hash, 'held')
  )
ORDER BY id

-- name: list_unfinished_epochs
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') ORDER BY id

-- name: list_sealed_epochs
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id >= %(oldest)s AND wal IS NOT NULL ORDER BY id

-- name: list_standing_epochs
SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state <> 'void' ORDER BY id

-- name: list_epochs_of_runs
-- The epochs that the runs have begun, by the names under which each pipeline's part of a run stands.
SELECT e.* FROM unnest(%(run_ids)s::text[]) k (run_id)
JOIN lockstep.run r ON r.dag_id = %(dag_id)s AND r.run_id = k.run_id
JOIN lockstep.epoch e ON e.pipeline = r.pipeline AND e.id = r.epoch
ORDER BY e.pipeline, e.id

-- name: find_predecessor
-- The epoch that a cursor epoch follows: neither void ones count, nor those that were replaced, nor lives aside of the order.
-- One that takes the place of several follows the one before these.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state NOT IN ('replaced', 'void') AND (generation = 0 OR replaces_to IS NOT NULL)
  AND id < coalesce(
      (SELECT replaces FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND replaces_to IS NOT NULL),
      %(epoch)s)
ORDER BY id DESC LIMIT 1

-- name: find_predecessor_of_sink
-- See find_predecessor. What was replaced is shown by every sink, and so is what an epoch that replaces several follows.
SELECT p.* FROM lockstep.participant p JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.epoch < %(epoch)s AND p.sink = %(sink)s
  AND e.state NOT IN ('replaced', 'void') AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
ORDER BY p.epoch DESC LIMIT 1

-- name: list_last_standing
-- An epoch of a cursor and those that it follows, the youngest first. One that takes the place of several follows the one
-- before these, however many they are: so each step is one look into an index.
WITH RECURSIVE line AS (
    SELECT id, coalesce(CASE WHEN replaces_to IS NOT NULL THEN replaces END, id) AS above, 1 AS place
    FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s
    UNION ALL
    SELECT b.id, coalesce(CASE WHEN b.replaces_to IS NOT NULL THEN b.replaces END, b.id), line.place + 1
    FROM line CROSS JOIN LATERAL (
        SELECT id, replaces, replaces_to FROM lockstep.epoch
        WHERE pipeline = %(pipeline)s AND id < line.above AND state NOT IN ('replaced', 'void')
          AND (generation = 0 OR replaces_to IS NOT NULL)
        ORDER BY id DESC LIMIT 1
    ) b
    WHERE line.place < %(limit)s
)
SELECT e.* FROM line JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = line.id ORDER BY e.id DESC

-- name: list_standing_from
-- A cursor's epochs from one on that follow one another now: none that is void, or replaced, or aside of the order.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id >= %(epoch)s AND state NOT IN ('replaced', 'void')
  AND (generation = 0 OR replaces_to IS NOT NULL)
ORDER BY id

-- name: find_source_before
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

-- name: find_source_after
-- Where a cursor source goes on after an epoch.
SELECT id, plan -> 'sources' -> %(source)s -> 'start' AS start FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND generation = 0 AND plan -> 'sources' ? %(source)s
  AND NOT plan -> 'sources' -> %(source)s ? 'snapshot'
ORDER BY id LIMIT 1
