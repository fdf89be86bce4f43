-- Of epochs, by their keys: the rows of each output, the sinks, and when each came to its states for the last time. To
-- staged only by its own seal: another attempt finds it so.
SELECT e.pipeline, e.id AS epoch, s.sinks, t.planned, t.staged, t.committed, t.published, t.cleaned, (
    SELECT jsonb_object_agg(key, value -> 'rows') FILTER (WHERE value ? 'rows') FROM jsonb_each(e.summary -> 'outputs')
) AS rows
FROM unnest(%(pipelines)s::text[], %(epochs)s::bigint[]) w (pipeline, epoch)
CROSS JOIN LATERAL (
    SELECT pipeline, id, summary FROM lockstep.epoch WHERE pipeline = w.pipeline AND id = w.epoch
) e
CROSS JOIN LATERAL (
    SELECT array_agg(sink ORDER BY sink) AS sinks FROM lockstep.participant WHERE pipeline = w.pipeline AND epoch = w.epoch
) s
CROSS JOIN LATERAL (
    SELECT min(at) FILTER (WHERE target_state = 'planned') AS planned,
           max(at) FILTER (WHERE target_state = 'staged' AND source_state = 'planned') AS staged,
           max(at) FILTER (WHERE target_state = 'committed') AS committed,
           max(at) FILTER (WHERE target_state = 'published') AS published,
           max(at) FILTER (WHERE target_state = 'cleaned') AS cleaned
    FROM lockstep.transition WHERE pipeline = w.pipeline AND epoch = w.epoch AND sink IS NULL
) t
ORDER BY e.pipeline
