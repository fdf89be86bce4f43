-- What carries a token that opened an attempt is of another ledger. Of executions of a ledger that was lost, and rebuilt,
-- nothing but the token is known.
SELECT token, sink IS NOT NULL OR attempt IS NOT NULL OR (role = 'operator' AND EXISTS (
    SELECT FROM lockstep.pipeline_change WHERE pipeline = %(pipeline)s AND change = 'rebuilt')) AS by_execution
FROM lockstep.execution WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND token = ANY(%(tokens)s)
