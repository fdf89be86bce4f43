-- what an attempt has begun came after it, so only the newest tokens are looked through
SELECT token FROM lockstep.execution
WHERE token > %(attempt)s AND pipeline = %(pipeline)s AND epoch = %(epoch)s
  AND attempt = %(attempt)s AND role = %(role)s AND actor = %(actor)s
ORDER BY token DESC LIMIT 1
