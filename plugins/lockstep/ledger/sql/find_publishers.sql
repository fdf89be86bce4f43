-- Sinks in which somebody has begun to publish the epoch; the decided attempt's token is older than every publisher's.
SELECT DISTINCT sink FROM lockstep.execution
WHERE token > %(attempt)s AND pipeline = %(pipeline)s AND epoch = %(epoch)s AND role IN ('publish', 'recover')
  AND sink = ANY(%(sinks)s)
ORDER BY sink
