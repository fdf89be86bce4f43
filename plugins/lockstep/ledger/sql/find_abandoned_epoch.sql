-- A cursor pipeline's lowest undecided epoch that nobody is at: a new run takes it over before it plans another.
SELECT * FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND state IN ('planned', 'staged') AND (lease_until IS NULL OR lease_until < now())
ORDER BY id LIMIT 1
