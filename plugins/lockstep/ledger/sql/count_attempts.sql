-- The how-manieth attempt a token is, and whether a begin took it: those of abort, recover and people are nobody's.
SELECT count(DISTINCT attempt) AS ordinal, coalesce(bool_or(attempt = %(attempt)s), false) AS begun FROM lockstep.transition
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink IS NULL AND role = 'begin' AND attempt <= %(attempt)s
