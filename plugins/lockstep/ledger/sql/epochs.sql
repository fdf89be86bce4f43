-- Epoch lookups.

-- name: find_epoch
-- One epoch, without a lock.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s

-- name: find_any_epoch
-- Rebuild requires a ledger without epochs.
SELECT pipeline, id FROM lockstep.epoch LIMIT 1

-- name: find_any_keyed_state
-- Whether the pipeline ever had state. ORDER BY makes the planner use the index instead of scanning other pipelines' epochs.
(SELECT FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND based_on IS NOT NULL ORDER BY pipeline, id LIMIT 1)
UNION ALL SELECT FROM lockstep.savepoint WHERE pipeline = %(pipeline)s AND savepoint -> 'versions' <> '{}' LIMIT 1

-- name: find_epoch_before
-- The preceding number, including void epochs.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id < %(epoch)s ORDER BY id DESC LIMIT 1

-- name: find_epoch_of_interval
-- The last decided generation of the interval's epoch, or the original.
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
-- Not found by pipeline.last_epoch: an operator may have advanced that number.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s ORDER BY id DESC LIMIT 1

-- name: find_last_decided_epoch
-- The newest decided epoch; of a cursor pipeline, the end of its sequence.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned')
  AND (span IS NOT NULL OR generation = 0 OR replaces_to IS NOT NULL) ORDER BY id DESC LIMIT 1

-- name: find_last_original
-- The newest original below a number (null: of all), including void epochs. Not by pipeline.last_epoch, see find_last_epoch.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND generation = 0 AND (%(below)s::bigint IS NULL OR id < %(below)s) ORDER BY id DESC LIMIT 1

-- name: find_abandoned_epoch
-- The lowest undecided epoch of a cursor pipeline without an active lease: a new run takes it over before it plans
-- another. A generation waits for the run that requested it.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND generation = 0 AND (lease_until IS NULL OR lease_until < now())
ORDER BY id LIMIT 1

-- name: list_abandoned_epochs
-- Undecided epochs without a lease or any change during the recovery grace: recovery may raise their attempt. Epochs with a
-- held verdict wait for an operator, and have nothing to roll back.
SELECT * FROM lockstep.epoch e
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND (lease_until IS NULL OR lease_until < now())
  AND greatest(attempted_at, changed_at, lease_until) < now() - %(recovery_grace)s
  AND NOT EXISTS (
      SELECT FROM lockstep.verdict v
      WHERE (v.pipeline, v.epoch, v.manifest_hash, v.outcome) = (e.pipeline, e.id, e.manifest_hash, 'held')
  )
ORDER BY id

-- name: list_unfinished_epochs
-- Served by the index epoch_unfinished.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') ORDER BY id

-- name: list_sealed_epochs
-- Epochs with a sealed WAL, cleaned or not.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id >= %(oldest)s AND wal IS NOT NULL ORDER BY id

-- name: list_epoch_ids
-- All epochs that are not void.
SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state <> 'void' ORDER BY id

-- name: list_epochs_of_runs
-- The epochs that runs began; a run of several pipelines has one run id for each.
SELECT e.* FROM unnest(%(run_ids)s::text[]) k (run_id)
JOIN lockstep.run r ON r.dag_id = %(dag_id)s AND r.run_id = k.run_id
JOIN lockstep.epoch e ON e.pipeline = r.pipeline AND e.id = r.epoch
ORDER BY e.pipeline, e.id

-- name: find_predecessor
-- The predecessor of a cursor epoch in the sequence: not void, not replaced, no generation outside the sequence. An epoch that
-- replaces several follows the predecessor of the first of them.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state NOT IN ('replaced', 'void') AND (generation = 0 OR replaces_to IS NOT NULL)
  AND id < coalesce(
      (SELECT replaces FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND replaces_to IS NOT NULL),
      %(epoch)s)
ORDER BY id DESC LIMIT 1

-- name: find_predecessor_of_sink
-- See find_predecessor. Every sink has published replaced epochs, and the predecessors of an epoch that replaces several.
SELECT p.* FROM lockstep.participant p JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.epoch < %(epoch)s AND p.sink = %(sink)s
  AND e.state NOT IN ('replaced', 'void') AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
ORDER BY p.epoch DESC LIMIT 1

-- name: list_predecessors
-- An epoch of a cursor and its predecessors, newest first. Recursive, because an epoch that replaces several jumps over
-- any number of epochs: each step is one index lookup.
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

-- name: list_epochs_in_order
-- The sequence of a cursor's epochs from one on: not void, not replaced, no generation outside the sequence.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id >= %(epoch)s AND state NOT IN ('replaced', 'void')
  AND (generation = 0 OR replaces_to IS NOT NULL)
ORDER BY id

-- name: find_source_before
-- The last end of a cursor source before an epoch. Generations end where their originals do. Void epochs count: their
-- ranges were abandoned, not released. Snapshots have no end.
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
-- The next start of a cursor source after an epoch.
SELECT id, plan -> 'sources' -> %(source)s -> 'start' AS start FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id > %(epoch)s AND generation = 0 AND plan -> 'sources' ? %(source)s
  AND NOT plan -> 'sources' -> %(source)s ? 'snapshot'
ORDER BY id LIMIT 1
