-- Of the WAL that is sealed now: what was staged before it has verdicts of its own.
SELECT v.* FROM lockstep.epoch e
JOIN lockstep.verdict v ON (v.pipeline, v.epoch, v.manifest_hash) = (e.pipeline, e.id, e.manifest_hash)
WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s
