-- A cursor pipeline's lowest undecided epoch that nobody is at: a new run takes it over before it plans another. What is to
-- take the place of others waits for who asked for that.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND generation = 0 AND (lease_until IS NULL OR lease_until < now())
ORDER BY id LIMIT 1
