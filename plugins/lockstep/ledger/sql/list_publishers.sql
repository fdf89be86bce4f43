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
