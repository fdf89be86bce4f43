-- By the order of an index: without one, the claims of others would be read through.
SELECT FROM lockstep.claim WHERE pipeline = %(pipeline)s ORDER BY pipeline, source, path, starts LIMIT 1
