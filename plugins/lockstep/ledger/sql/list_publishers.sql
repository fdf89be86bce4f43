-- An epoch's participants, each with how long nobody has been at publishing it. A cursor epoch waits for the ones before
-- it in the same sink: whoever is at those, or has just published the last of them, is a sign of life for it too.
SELECT p.*, now() - p.changed_at AS age, now() - greatest(
    e.changed_at, p.lease_until,
    (SELECT max(b.lease_until) FROM lockstep.participant b
     WHERE e.span IS NULL AND b.pipeline = p.pipeline AND b.epoch < p.epoch AND b.sink = p.sink AND b.state <> 'published'),
    (SELECT CASE b.state WHEN 'published' THEN b.changed_at END FROM lockstep.participant b
     WHERE e.span IS NULL AND b.pipeline = p.pipeline AND b.epoch < p.epoch AND b.sink = p.sink
     ORDER BY b.epoch DESC LIMIT 1)) AS silence
FROM lockstep.participant p JOIN lockstep.epoch e ON (e.pipeline, e.id) = (p.pipeline, p.epoch)
WHERE p.pipeline = %(pipeline)s AND p.epoch = %(epoch)s ORDER BY p.sink
