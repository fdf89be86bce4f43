-- Pipelines: their numbers, settings, and what people decide about them as a whole.

-- name: ensure_pipeline
INSERT INTO lockstep.pipeline (name, identity) VALUES (%(pipeline)s, %(identity)s) ON CONFLICT (name) DO NOTHING

-- name: find_pipeline
SELECT name, identity, last_epoch, recovery_grace, forgotten_at, forgotten_by, forgotten_why, keep_wal_time, keep_wal_epochs
FROM lockstep.pipeline WHERE name = %(pipeline)s

-- name: list_pipelines
SELECT name, identity, last_epoch, forgotten_at, forgotten_by, forgotten_why
FROM lockstep.pipeline WHERE forgotten_at IS NULL ORDER BY name

-- name: list_recoverable_pipelines
-- Forgotten ones too, as long as something of theirs may turn up in a sink.
SELECT name FROM lockstep.pipeline WHERE forgotten_at IS NULL OR swept_until > now() ORDER BY name

-- name: lock_pipeline
-- Whoever numbers epochs or claims files takes turns here. Always before lock_epoch, never after it.
SELECT * FROM lockstep.pipeline WHERE name = %(pipeline)s FOR NO KEY UPDATE

-- name: number_epoch
-- Dense numbers: taken in the transaction that inserts the epoch, under the pipeline's row lock.
UPDATE lockstep.pipeline SET last_epoch = last_epoch + 1 WHERE name = %(pipeline)s RETURNING last_epoch

-- name: lift_epochs
-- Forward only; the next epoch's number is one above.
UPDATE lockstep.pipeline SET last_epoch = greatest(last_epoch, %(beyond)s) WHERE name = %(pipeline)s

-- name: set_recovery_grace
UPDATE lockstep.pipeline SET recovery_grace = %(recovery_grace)s WHERE name = %(pipeline)s AND recovery_grace <> %(recovery_grace)s

-- name: keep_retention
UPDATE lockstep.pipeline SET keep_wal_time = %(time)s, keep_wal_epochs = %(epochs)s
WHERE name = %(pipeline)s AND (keep_wal_time, keep_wal_epochs) IS DISTINCT FROM (%(time)s::interval, %(epochs)s::integer)

-- name: forget_pipeline
-- Where a prepare has ever begun, an old process may still leave something in a sink: recovery looks there for a while.
UPDATE lockstep.pipeline p
SET forgotten_at = now(), forgotten_by = %(actor)s, forgotten_why = %(reason)s,
    swept_until = now() + CASE WHEN EXISTS (
        SELECT FROM lockstep.execution x WHERE x.pipeline = p.name AND x.role = 'prepare'
    ) THEN interval '7 days' ELSE interval '0' END
WHERE name = %(pipeline)s AND forgotten_at IS NULL

-- name: insert_pipeline_change
INSERT INTO lockstep.pipeline_change (pipeline, change, found, actor, reason)
VALUES (%(pipeline)s, %(change)s, %(found)s, %(actor)s, %(reason)s)

-- name: find_pipeline_change
SELECT found FROM lockstep.pipeline_change WHERE pipeline = %(pipeline)s AND change = %(change)s ORDER BY id DESC LIMIT 1

-- name: insert_savepoint
INSERT INTO lockstep.savepoint (pipeline, savepoint, hash, actor) VALUES (%(pipeline)s, %(savepoint)s, %(hash)s, %(actor)s)

-- name: find_savepoint
SELECT savepoint, hash FROM lockstep.savepoint WHERE pipeline = %(pipeline)s

-- name: remember_sink
INSERT INTO lockstep.planned_sink (pipeline, sink, spec) VALUES (%(pipeline)s, %(sink)s, %(spec)s)
ON CONFLICT (pipeline, sink, spec_md5) DO UPDATE SET planned_at = now()

-- name: list_planned_sinks
-- A process that prepares for a plan of long ago is not to be feared any more; its target may be gone, too.
SELECT spec FROM lockstep.planned_sink
WHERE pipeline = %(pipeline)s AND planned_at > now() - interval '7 days' ORDER BY sink, planned_at

-- name: keep_deployed
INSERT INTO lockstep.deployed_setting (pipeline, sink, spec) VALUES (%(pipeline)s, %(sink)s, %(spec)s)
ON CONFLICT (pipeline, sink) DO UPDATE SET spec = EXCLUDED.spec, deployed_at = now()
WHERE deployed_setting.spec <> EXCLUDED.spec

-- name: find_settings
SELECT (SELECT spec FROM lockstep.deployed_setting WHERE pipeline = %(pipeline)s AND sink = %(sink)s) AS deployed,
       (SELECT settings FROM lockstep.setting_override WHERE pipeline = %(pipeline)s AND sink = %(sink)s
        ORDER BY id DESC LIMIT 1) AS override

-- name: override_settings
INSERT INTO lockstep.setting_override (pipeline, sink, settings, actor, reason)
VALUES (%(pipeline)s, %(sink)s, %(settings)s, %(actor)s, %(reason)s)

-- name: list_overrides
SELECT sink, settings, actor, reason, at FROM lockstep.setting_override WHERE pipeline = %(pipeline)s ORDER BY id DESC

-- name: list_dags
-- The DAGs whose runs have begun one of the youngest original epochs of each pipeline: a person may have restated many.
SELECT DISTINCT p.name AS pipeline, r.dag_id
FROM unnest(%(pipelines)s::text[]) p (name)
CROSS JOIN LATERAL (SELECT id FROM lockstep.epoch WHERE pipeline = p.name AND root IS NULL ORDER BY id DESC LIMIT 10) e
JOIN lockstep.run r ON r.pipeline = p.name AND r.epoch = e.id
ORDER BY 1, 2

-- name: list_pipelines_of_dag
-- The pipelines that a DAG moves: those of which its runs have begun one of the youngest original epochs, and that of any
-- run of it, which is the first in the order of the key, so that none but one is read.
SELECT p.name AS pipeline
FROM lockstep.pipeline p
CROSS JOIN LATERAL (SELECT id FROM lockstep.epoch WHERE pipeline = p.name AND root IS NULL ORDER BY id DESC LIMIT 10) e
JOIN lockstep.run r ON r.pipeline = p.name AND r.epoch = e.id
WHERE r.dag_id = %(dag_id)s
UNION
(SELECT pipeline FROM lockstep.run WHERE dag_id = %(dag_id)s ORDER BY dag_id, run_id LIMIT 1)
ORDER BY 1
