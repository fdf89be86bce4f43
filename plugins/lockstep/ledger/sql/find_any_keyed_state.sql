-- By the order of an index: without one, the epochs of others would be read through.
(SELECT FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND based_on IS NOT NULL ORDER BY pipeline, id LIMIT 1)
UNION ALL SELECT FROM lockstep.savepoint WHERE pipeline = %(pipeline)s AND savepoint -> 'versions' <> '{}' LIMIT 1
