UPDATE lockstep.epoch e
SET state = 'staged', wal = r.wal, manifest_hash = r.manifest_hash, summary = r.summary, code_version = 'unknown',
    based_on = r.based_on
FROM jsonb_to_recordset(%(epochs)s) AS r (id bigint, wal text, manifest_hash text, summary jsonb, based_on text)
WHERE e.pipeline = %(pipeline)s AND e.id = r.id
