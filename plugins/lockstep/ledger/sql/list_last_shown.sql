-- Of each sink what it was last to show, among the youngest decided epochs whose place nobody has taken: by the time, as
-- they needn't be shown in the order of their numbers. What was written again from the WAL, as its transaction was gone,
-- proves least of what stood there before: it is told only where the target has shown nothing else.
SELECT last.*, e.manifest_hash, e.plan #> ARRAY['sinks', last.sink] AS spec
FROM (
    SELECT DISTINCT ON (shown.sink) shown.sink, shown.epoch, shown.target_id, shown.publication
    FROM (
        SELECT p.*, first_value(p.target_id) OVER (PARTITION BY p.sink ORDER BY p.changed_at DESC, p.epoch DESC) AS target_now
        FROM (
            SELECT id FROM lockstep.epoch
            WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned') ORDER BY id DESC LIMIT 16
        ) young
        JOIN lockstep.participant p ON p.pipeline = %(pipeline)s AND p.epoch = young.id
        WHERE p.sink = ANY(%(sinks)s) AND p.state = 'published'
    ) shown
    ORDER BY shown.sink, shown.target_id <> shown.target_now, shown.publication = 'repaired', shown.changed_at DESC, shown.epoch DESC
) last
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = last.epoch
