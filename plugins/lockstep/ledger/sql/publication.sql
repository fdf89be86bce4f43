-- publish and cleanup: what sinks show, retained WALs, asset events.

-- name: record_publication
-- What was amiss with rows whose place these take goes with them, sink by sink.
WITH proven AS (
    UPDATE lockstep.participant q SET unproven = NULL FROM lockstep.epoch e
    WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s AND q.pipeline = e.pipeline AND q.epoch BETWEEN e.replaces AND coalesce(e.replaces_to, e.replaces)
      AND q.sink = %(sink)s AND q.unproven IS NOT NULL
)
UPDATE lockstep.participant SET state = 'published', publication = %(publication)s, unproven = %(unproven)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' AND token = %(token)s
RETURNING sink

-- name: publish_epoch
UPDATE lockstep.epoch e SET state = 'published'
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'committed'
  AND NOT EXISTS (SELECT FROM lockstep.participant p
                  WHERE p.pipeline = e.pipeline AND p.epoch = e.id AND p.state <> 'published')
RETURNING *

-- name: renew_publisher
-- Whoever publishes is at work. Nothing is decided by it: it only keeps a long publication from being called stuck.
UPDATE lockstep.participant SET lease_until = now() + %(lease)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared'
RETURNING sink

-- name: find_publishers
-- Sinks in which somebody has begun to publish the epoch; the decided attempt's token is older than every publisher's.
SELECT DISTINCT sink FROM lockstep.execution
WHERE token > %(attempt)s AND pipeline = %(pipeline)s AND epoch = %(epoch)s AND role IN ('publish', 'recover')
  AND sink = ANY(%(sinks)s)
ORDER BY sink

-- name: list_publishers
-- The participants of epochs, each with how long nobody has been at publishing it. A cursor epoch waits for the ones
-- before it in the same sink: whoever is at those, or has just published the last of them, is a sign of life for it too.
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
-- A person says that this target, as it is now, does not hold the epoch: publish goes there, from the WAL.
UPDATE lockstep.participant SET target_id = %(target_id)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'prepared' RETURNING sink

-- name: record_comparison
-- Somebody has read a sink back; of what nobody has published there is nothing to compare.
UPDATE lockstep.participant SET unproven = %(unproven)s, compared_at = now(), compared_by = %(actor)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'published'

-- name: restage_epoch
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

-- name: clean_epoch
UPDATE lockstep.epoch SET state = 'cleaned' WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'published' RETURNING *

-- name: list_published
-- What a sink has published, and no other epoch has taken the place of; `resolved`: also what stands by a person's word.
SELECT e.id, e.manifest_hash FROM lockstep.participant p
JOIN lockstep.epoch e ON e.pipeline = p.pipeline AND e.id = p.epoch
WHERE p.pipeline = %(pipeline)s AND p.sink = %(sink)s AND p.state = 'published'
  AND (%(resolved)s OR p.publication <> 'resolved') AND e.state IN ('committed', 'published', 'cleaned')
ORDER BY e.id

-- name: list_last_shown
-- Of each sink what it was last to show, youngest first: by the time, as epochs needn't be shown in the order of their
-- numbers. Back to one that was shown before the last of those behind it was begun: a `begin` has asked for that one, so
-- what was lost since is among these, however many were decided before the loss and shown behind it. Epochs that were
-- shown in one go, as a pack's are, were lost or kept together: one of them tells. Only what a sink has published counts.
-- `said_lost`: a person has said that the sink lacks an epoch that was shown by then or later, replaced or not.
-- (A sink that was never planned is not looked for; above a thousand epochs that were replaced is one that replaced them.)
SELECT DISTINCT ON (shown.sink, shown.changed_at)
       shown.sink, shown.epoch, shown.target_id, shown.publication, e.manifest_hash, e.plan #> ARRAY['sinks', shown.sink] AS spec,
       EXISTS (
           SELECT FROM (
               SELECT found FROM lockstep.pipeline_change
               WHERE pipeline = %(pipeline)s AND change = 'renumbered' ORDER BY id DESC LIMIT 1
           ) said
           CROSS JOIN LATERAL jsonb_array_elements(said.found -> 'lacking') word
           JOIN lockstep.participant p ON p.pipeline = %(pipeline)s AND p.sink = shown.sink AND p.state = 'published'
                                      AND p.epoch = (word ->> 'epoch')::bigint AND p.changed_at >= shown.changed_at
           WHERE word ->> 'sink' = shown.sink
       ) AS said_lost
FROM (
    SELECT told.*, row_number() OVER later AS place, lag(told.changed_at < told.begun) OVER later AS enough
    FROM (
        SELECT p.*, first_value(p.target_id) OVER later AS target_now,
               max(p.planned_at) OVER (later ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS begun
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
    ) told
    WINDOW later AS (PARTITION BY told.sink ORDER BY told.changed_at DESC, told.epoch DESC)
) shown
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = shown.epoch
WHERE shown.enough IS NOT TRUE AND shown.place <= 16 AND shown.target_id = shown.target_now
ORDER BY shown.sink, shown.changed_at DESC, shown.epoch DESC

-- name: list_wals
-- The sealed WALs that are there, youngest epoch first: of epochs that aren't finished, and those that are kept.
SELECT e.*, k.kept_at, k.expired_at, k.wal AS kept_wal, k.bytes AS kept_bytes
FROM (
    (SELECT epoch AS id FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s ORDER BY epoch DESC LIMIT %(limit)s)
    UNION SELECT id FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') AND wal IS NOT NULL
) i
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = i.id
LEFT JOIN lockstep.kept_wal k ON k.pipeline = e.pipeline AND k.epoch = e.id
ORDER BY e.id DESC LIMIT %(limit)s

-- name: keep_wal
-- Once: whoever cleans up later goes by it. What doesn't stay has a row, too, until cleanup is recorded.
INSERT INTO lockstep.kept_wal (pipeline, epoch, wal, bytes, expired_at)
VALUES (%(pipeline)s, %(epoch)s, %(wal)s, %(bytes)s, CASE WHEN NOT %(stays)s THEN now() END)
ON CONFLICT (pipeline, epoch) DO NOTHING

-- name: find_kept_wal
SELECT * FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s

-- name: list_kept_wals
SELECT * FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s ORDER BY epoch

-- name: count_kept_wals
SELECT pipeline, count(*) AS epochs, sum(bytes)::bigint AS bytes, min(kept_at) AS oldest
FROM lockstep.kept_wal WHERE pipeline = ANY(%(pipelines)s::text[]) AND expired_at IS NULL GROUP BY pipeline

-- name: list_due_wals
-- Kept WALs that the pipeline's retention keeps no longer, and those that somebody has begun to delete; oldest first. None
-- that an epoch reads which isn't finished, nor one that another refers to which isn't, or whose WAL is kept.
SELECT k.* FROM lockstep.kept_wal k JOIN lockstep.pipeline p ON p.name = k.pipeline
WHERE k.pipeline = %(pipeline)s
  AND (k.expired_at IS NOT NULL
       OR num_nonnulls(p.keep_wal_time, p.keep_wal_epochs) = 0
       OR k.kept_at < now() - p.keep_wal_time
       OR (p.keep_wal_epochs IS NOT NULL
           AND k.epoch <= (SELECT n.epoch FROM lockstep.kept_wal n WHERE n.pipeline = k.pipeline
                           ORDER BY n.epoch DESC OFFSET p.keep_wal_epochs LIMIT 1)))
  AND NOT EXISTS (SELECT FROM lockstep.epoch e
                  WHERE e.pipeline = k.pipeline AND e.state IN ('planned', 'staged', 'committed', 'published')
                    AND k.wal IN (e.wal, e.restaged_wal))
  AND NOT EXISTS (SELECT FROM lockstep.epoch e LEFT JOIN lockstep.kept_wal h ON h.pipeline = e.pipeline AND h.epoch = e.id
                  WHERE e.pipeline = k.pipeline AND e.restores = k.epoch
                    AND (e.state IN ('planned', 'staged', 'committed', 'published')
                         OR (h.epoch IS NOT NULL AND h.expired_at IS NULL)))
ORDER BY k.epoch

-- name: expire_wals
UPDATE lockstep.kept_wal SET expired_at = now()
WHERE pipeline = %(pipeline)s AND epoch = ANY(%(epochs)s) AND expired_at IS NULL

-- name: forget_wal
DELETE FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND expired_at IS NOT NULL

-- name: find_pending_events
SELECT *, now() - shown_at AS age FROM lockstep.pending_asset_event WHERE pipeline = %(pipeline)s AND epoch = ANY (%(epochs)s)

-- name: list_pending_events
-- Of all pipelines, a sink's oldest first, and each sink's first before any sink's second: one of which nothing can be told
-- keeps none from its turn. With the runs that came to the epoch: one of them may be about to tell it.
SELECT u.*, now() - u.shown_at AS age, now() - u.missed_at AS missed,
       ARRAY(SELECT ARRAY[r.dag_id, r.run_id] FROM lockstep.run r WHERE r.pipeline = u.pipeline AND r.epoch = u.epoch) AS runs
FROM (SELECT *, row_number() OVER (PARTITION BY pipeline, sink ORDER BY shown_at, epoch) AS place FROM lockstep.pending_asset_event) u
ORDER BY u.place, u.shown_at, u.pipeline, u.epoch, u.sink LIMIT %(limit)s

-- name: mark_emitted
DELETE FROM lockstep.pending_asset_event WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = ANY (%(sinks)s)

-- name: mark_missed
UPDATE lockstep.pending_asset_event SET missed_at = now()
WHERE pipeline = %(pipeline)s AND sink = %(sink)s AND epoch = ANY (%(epochs)s) AND missed_at IS NULL

-- name: forget_pending_events
DELETE FROM lockstep.pending_asset_event WHERE pipeline = %(pipeline)s AND sink = %(sink)s AND epoch = ANY (%(epochs)s)

-- name: forget_replaced
-- What no sink shows any more is no news: of what took its place something else is told.
DELETE FROM lockstep.pending_asset_event u USING lockstep.epoch e
WHERE (e.pipeline, e.id) = (u.pipeline, u.epoch) AND e.state = 'replaced'
