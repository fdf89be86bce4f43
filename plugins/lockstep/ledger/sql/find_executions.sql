-- Tokens that opened an attempt name no transaction and no folder: what carries one of those is of another ledger.
SELECT token FROM lockstep.execution
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND token = ANY(%(tokens)s)
  AND NOT (sink IS NULL AND role IN ('begin', 'abort', 'recover'))
