-- publish and cleanup: publications, retained WALs, asset events.

-- name: record_publication
-- prepared -> published. `unproven` of the replaced epochs is cleared: their rows are removed with this publication.
WITH proven AS (
    UPDATE lockstep.participant q SET unproven = NULL FROM lockstep.epoch e
    WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s AND q.pipeline = e.pipeline AND q.epoch BETWEEN e.replaces AND coalesce(e.replaces_to, e.replaces)
      AND q.sink = %(sink)s AND q.unproven IS NOT NULL
)
UPDATE lockstep.participant SET state = 'published', publication = %(publication)s, unproven = %(unproven)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' AND token = %(token)s
RETURNING sink

-- name: publish_epoch
-- committed -> published, with the last sink.
UPDATE lockstep.epoch e SET state = 'published'
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'committed'
  AND NOT EXISTS (SELECT FROM lockstep.participant p
                  WHERE p.pipeline = e.pipeline AND p.epoch = e.id AND p.state <> 'published')
RETURNING *

-- name: renew_publisher_lease
-- Informational: keeps a long publication from being reported as stuck.
UPDATE lockstep.participant SET lease_until = now() + %(lease)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared'
RETURNING sink

-- name: find_publishers
-- Sinks in which the publication has started: tokens of publishers are higher than the decided attempt.
SELECT DISTINCT sink FROM lockstep.execution
WHERE token > %(attempt)s AND pipeline = %(pipeline)s AND epoch = %(epoch)s AND role IN ('publish', 'recover')
  AND sink = ANY(%(sinks)s)
ORDER BY sink

-- name: list_publishers
-- Participants with the time since the last activity of a publisher. A cursor epoch waits for the epochs before it in the
-- same sink, so activity there counts, too.
SELECT p.*, now() - p.changed_at AS age, now() - greatest(
    e.changed_at, p.lease_until,
    (SELECT max(b.lease_until) FROM lockstep.participant b
     WHERE e.waits AND b.pipeline = p.pipeline AND b.epoch < p.epoch AND b.sink = p.sink AND b.state <> 'published'),
    (SELECT CASE b.state WHEN 'published' THEN b.changed_at END FROM lockstep.participant b
     WHERE e.waits AND b.pipeline = p.pipeline AND b.epoch < p.epoch AND b.sink = p.sink
     ORDER BY b.epoch DESC LIMIT 1)) AS silence
FROM unnest(%(pipelines)s::text[], %(epochs)s::bigint[]) w (pipeline, epoch)
CROSS JOIN LATERAL (
    SELECT changed_at, span IS NULL AND state = 'committed' AS waits FROM lockstep.epoch
    WHERE pipeline = w.pipeline AND id = w.epoch
) e
CROSS JOIN LATERAL (SELECT * FROM lockstep.participant WHERE pipeline = w.pipeline AND epoch = w.epoch) p
ORDER BY p.pipeline, p.epoch, p.sink

-- name: retarget_participant
-- An operator states that the target lacks the epoch: publish writes it there, from the WAL.
UPDATE lockstep.participant SET target_id = %(target_id)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' RETURNING sink

-- name: record_comparison
-- The result of reading a sink back.
UPDATE lockstep.participant SET unproven = %(unproven)s, compared_at = now(), compared_by = %(actor)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'published'

-- name: restage_epoch
-- Only if rows and digests of every output equal the sealed ones.
UPDATE lockstep.epoch SET restaged_wal = %(wal)s, restaged_hash = %(hash)s, reordered = %(reordered)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'committed' AND wal <> %(wal)s
  AND summary -> 'digest_version' = %(summary)s::jsonb -> 'digest_version'
  AND NOT EXISTS (
      SELECT FROM jsonb_each(summary -> 'outputs') AS sealed FULL JOIN jsonb_each(%(summary)s::jsonb -> 'outputs') AS restaged USING (key)
      WHERE (sealed.value -> 'rows', sealed.value -> 'digest') IS DISTINCT FROM (restaged.value -> 'rows', restaged.value -> 'digest')
  )
  AND NOT EXISTS (
      SELECT FROM jsonb_each(coalesce(summary -> 'quarantined', '{}')) AS sealed
      FULL JOIN jsonb_each(coalesce(%(summary)s::jsonb -> 'quarantined', '{}')) AS restaged USING (key)
      WHERE (sealed.value -> 'rows', sealed.value -> 'digest') IS DISTINCT FROM (restaged.value -> 'rows', restaged.value -> 'digest')
  )
RETURNING *

-- name: clean_epoch
-- published -> cleaned.
UPDATE lockstep.epoch SET state = 'cleaned' WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'published' RETURNING *

-- name: list_published
-- Epochs that a sink has published and that are not replaced; `resolved`: including those resolved by an operator.
SELECT e.id, e.manifest_hash FROM lockstep.participant p
JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.sink = %(sink)s AND p.state = 'published'
  AND (%(resolved)s OR p.publication <> 'resolved') AND e.state IN ('committed', 'published', 'cleaned')
ORDER BY e.id

-- name: list_last_published
-- The last publications of each sink by time, newest first: epochs need not be published in the order of their numbers. Goes
-- back to an epoch that was published before the last of the newer ones was begun: begin has verified that one, so any loss
-- since is among the returned ones. Epochs published in one step, like a pack, are lost or kept together: one is returned.
-- `reported_lost`: an operator reported that the sink lacks an epoch published then or later, replaced or not.
-- (Sinks that were never planned are skipped. Among more than a thousand replaced epochs there is one that replaced them.)
SELECT DISTINCT ON (recent.sink, recent.changed_at)
       recent.sink, recent.epoch, recent.target_id, recent.publication, e.manifest_hash, e.plan #> ARRAY['sinks', recent.sink] AS spec,
       EXISTS (
           SELECT FROM (
               SELECT details FROM lockstep.pipeline_change
               WHERE pipeline = %(pipeline)s AND change = 'renumbered' ORDER BY id DESC LIMIT 1
           ) change
           CROSS JOIN LATERAL jsonb_array_elements(change.details -> 'lacking') entry
           JOIN lockstep.participant p ON p.pipeline = %(pipeline)s AND p.sink = recent.sink AND p.state = 'published'
                                      AND p.epoch = (entry ->> 'epoch')::bigint AND p.changed_at >= recent.changed_at
           WHERE entry ->> 'sink' = recent.sink
       ) AS reported_lost
FROM (
    SELECT ordered.*, row_number() OVER later AS place, lag(ordered.changed_at < ordered.newer_planned_at) OVER later AS before_newer
    FROM (
        SELECT p.*, first_value(p.target_id) OVER later AS target_now,
               max(p.planned_at) OVER (later ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer_planned_at
        FROM unnest(%(sinks)s::text[]) s (name)
        CROSS JOIN LATERAL (
            SELECT published.*, decided.planned_at FROM (
                SELECT epoch, sink, target_id, publication, changed_at FROM lockstep.participant
                WHERE pipeline = %(pipeline)s AND sink = s.name AND state = 'published'
                  AND EXISTS (SELECT FROM lockstep.planned_sink k WHERE k.pipeline = %(pipeline)s AND k.sink = s.name)
                ORDER BY epoch DESC LIMIT 1000
            ) published CROSS JOIN LATERAL (
                SELECT planned_at FROM lockstep.epoch
                WHERE pipeline = %(pipeline)s AND id = published.epoch AND state IN ('committed', 'published', 'cleaned') LIMIT 1
            ) decided ORDER BY published.epoch DESC LIMIT 32
        ) p
        WINDOW later AS (PARTITION BY p.sink ORDER BY p.changed_at DESC, p.epoch DESC)
    ) ordered
    WINDOW later AS (PARTITION BY ordered.sink ORDER BY ordered.changed_at DESC, ordered.epoch DESC)
) recent
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = recent.epoch
WHERE recent.before_newer IS NOT TRUE AND recent.place <= 16 AND recent.target_id = recent.target_now
ORDER BY recent.sink, recent.changed_at DESC, recent.epoch DESC

-- name: list_wals
-- Existing sealed WALs, newest epoch first: those of unfinished epochs, and retained ones.
SELECT e.*, k.retained_at, k.expired_at, k.wal AS retained_wal, k.bytes AS retained_bytes
FROM (
    (SELECT epoch AS id FROM lockstep.retained_wal WHERE pipeline = %(pipeline)s ORDER BY epoch DESC LIMIT %(limit)s)
    UNION SELECT id FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') AND wal IS NOT NULL
) i
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = i.id
LEFT JOIN lockstep.retained_wal k ON k.pipeline = e.pipeline AND k.epoch = e.id
ORDER BY e.id DESC LIMIT %(limit)s

-- name: retain_wal
-- The first decision is final: concurrent cleanups follow it. A WAL to be deleted has a row, too, until cleanup is recorded.
INSERT INTO lockstep.retained_wal (pipeline, epoch, wal, bytes, expired_at)
VALUES (%(pipeline)s, %(epoch)s, %(wal)s, %(bytes)s, CASE WHEN NOT %(stays)s THEN now() END)
ON CONFLICT (pipeline, epoch) DO NOTHING

-- name: find_retained_wal
-- Whether cleanup decided to retain the WAL.
SELECT * FROM lockstep.retained_wal WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s

-- name: list_retained_wals
-- Including expired ones whose files are being deleted.
SELECT * FROM lockstep.retained_wal WHERE pipeline = %(pipeline)s ORDER BY epoch

-- name: count_retained_wals
-- Number, size and age of the retained WALs.
SELECT pipeline, count(*) AS epochs, sum(bytes)::bigint AS bytes, min(retained_at) AS oldest
FROM lockstep.retained_wal WHERE pipeline = ANY(%(pipelines)s::text[]) AND expired_at IS NULL GROUP BY pipeline

-- name: list_expiring_wals
-- WALs beyond the pipeline's retention, and partly deleted ones; oldest first. Not those that an unfinished epoch reads, or that
-- an epoch restores which is unfinished or whose own WAL is retained.
SELECT k.* FROM lockstep.retained_wal k JOIN lockstep.pipeline p ON p.name = k.pipeline
WHERE k.pipeline = %(pipeline)s
  AND (k.expired_at IS NOT NULL
       OR num_nonnulls(p.keep_wal_time, p.keep_wal_epochs) = 0
       OR k.retained_at < now() - p.keep_wal_time
       OR (p.keep_wal_epochs IS NOT NULL
           AND k.epoch <= (SELECT n.epoch FROM lockstep.retained_wal n WHERE n.pipeline = k.pipeline
                           ORDER BY n.epoch DESC OFFSET p.keep_wal_epochs LIMIT 1)))
  AND NOT EXISTS (SELECT FROM lockstep.epoch e
                  WHERE e.pipeline = k.pipeline AND e.state IN ('planned', 'staged', 'committed', 'published')
                    AND k.wal IN (e.wal, e.restaged_wal))
  AND NOT EXISTS (SELECT FROM lockstep.epoch e LEFT JOIN lockstep.retained_wal h ON h.pipeline = e.pipeline AND h.epoch = e.id
                  WHERE e.pipeline = k.pipeline AND e.restores = k.epoch
                    AND (e.state IN ('planned', 'staged', 'committed', 'published')
                         OR (h.epoch IS NOT NULL AND h.expired_at IS NULL)))
ORDER BY k.epoch

-- name: expire_wals
-- Before the files are deleted: from now on the WAL may be incomplete.
UPDATE lockstep.retained_wal SET expired_at = now()
WHERE pipeline = %(pipeline)s AND epoch = ANY(%(epochs)s) AND expired_at IS NULL

-- name: delete_retained_wal
-- After the files of an expired WAL were deleted.
DELETE FROM lockstep.retained_wal WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND expired_at IS NOT NULL

-- name: find_pending_events
-- Publications without a confirmed asset event.
SELECT *, now() - published_at AS age FROM lockstep.pending_asset_event WHERE pipeline = %(pipeline)s AND epoch = ANY (%(epochs)s)

-- name: list_pending_events
-- Of all pipelines, a sink's oldest first, and every sink's first before any sink's second: an event that can't be emitted must
-- not block other sinks. With the runs of the epoch: one of them may be about to emit the event.
SELECT u.*, now() - u.published_at AS age, now() - u.missed_at AS missed,
       ARRAY(SELECT ARRAY[r.dag_id, r.run_id] FROM lockstep.run r WHERE r.pipeline = u.pipeline AND r.epoch = u.epoch) AS runs
FROM (SELECT *, row_number() OVER (PARTITION BY pipeline, sink ORDER BY published_at, epoch) AS place FROM lockstep.pending_asset_event) u
ORDER BY u.place, u.published_at, u.pipeline, u.epoch, u.sink LIMIT %(limit)s

-- name: mark_emitted
-- The event was seen in Airflow's database.
DELETE FROM lockstep.pending_asset_event WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = ANY (%(sinks)s)

-- name: mark_missed
-- Sets the first time only.
UPDATE lockstep.pending_asset_event SET missed_at = now()
WHERE pipeline = %(pipeline)s AND sink = %(sink)s AND epoch = ANY (%(epochs)s) AND missed_at IS NULL

-- name: delete_unemittable_events
-- Events that can't be emitted.
DELETE FROM lockstep.pending_asset_event WHERE pipeline = %(pipeline)s AND sink = %(sink)s AND epoch = ANY (%(epochs)s)

-- name: delete_replaced_events
-- No event for replaced rows: the replacing epoch emits its own.
DELETE FROM lockstep.pending_asset_event u USING lockstep.epoch e
WHERE (e.pipeline, e.id) = (u.pipeline, u.epoch) AND e.state = 'replaced'
