-- Of each sink what it was last to show, among the youngest decided epochs whose place nobody has taken: by the time, as
-- they needn't be shown in the order of their numbers.
SELECT last.*, e.manifest_hash, e.plan #> ARRAY['sinks', last.sink] AS spec
FROM (
    SELECT DISTINCT ON (p.sink) p.sink, p.epoch, p.target_id, p.publication
    FROM (
        SELECT id FROM lockstep.epoch
        WHERE pipeline = %(pipeline)s AND state IN ('committed', 'published', 'cleaned') ORDER BY id DESC LIMIT 16
    ) young
    JOIN lockstep.participant p ON p.pipeline = %(pipeline)s AND p.epoch = young.id
    WHERE p.sink = ANY(%(sinks)s) AND p.state = 'published'
    ORDER BY p.sink, p.changed_at DESC, p.epoch DESC
) last
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = last.epoch
