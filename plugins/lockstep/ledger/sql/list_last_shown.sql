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
