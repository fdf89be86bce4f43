-- Those whose places were taken by what has just been decided.
UPDATE lockstep.epoch e SET state = 'replaced'
FROM lockstep.epoch n
WHERE e.pipeline = %(pipeline)s AND e.state = 'cleaned' AND n.pipeline = e.pipeline AND n.replaces = e.id AND n.state = 'committed'
