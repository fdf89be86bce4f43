-- Pipelines: epoch numbers, settings, manual decisions.

-- name: ensure_pipeline
-- Registers a pipeline with its first epoch.
INSERT INTO lockstep.pipeline (name, keyed_by) VALUES (%(pipeline)s, %(keyed_by)s) ON CONFLICT (name) DO NOTHING

-- name: find_pipeline
-- One pipeline, including a forgotten one.
SELECT name, keyed_by, last_epoch, recovery_grace, forgotten_at, forgotten_by, forgotten_reason, keep_wal_time, keep_wal_epochs
FROM lockstep.pipeline WHERE name = %(pipeline)s

-- name: list_pipelines
-- All pipelines that are not forgotten.
SELECT name, keyed_by, last_epoch, forgotten_at, forgotten_by, forgotten_reason
FROM lockstep.pipeline WHERE forgotten_at IS NULL ORDER BY name

-- name: list_recoverable_pipelines
-- Including forgotten ones while old processes may still write to their sinks.
SELECT name FROM lockstep.pipeline WHERE forgotten_at IS NULL OR swept_until > now() ORDER BY name

-- name: lock_pipeline
-- Serializes numbering and file claims. Always before lock_epoch, never after it.
SELECT * FROM lockstep.pipeline WHERE name = %(pipeline)s FOR NO KEY UPDATE

-- name: number_epoch
-- Dense numbers: taken in the transaction that inserts the epoch, under lock_pipeline.
UPDATE lockstep.pipeline SET last_epoch = last_epoch + 1 WHERE name = %(pipeline)s RETURNING last_epoch

-- name: advance_epoch_number
-- Never lowers the number; the next epoch gets the one above.
UPDATE lockstep.pipeline SET last_epoch = greatest(last_epoch, %(beyond)s) WHERE name = %(pipeline)s

-- name: set_recovery_grace
-- Only writes a changed value.
UPDATE lockstep.pipeline SET recovery_grace = %(recovery_grace)s WHERE name = %(pipeline)s AND recovery_grace <> %(recovery_grace)s

-- name: set_retention
-- Only writes a changed value.
UPDATE lockstep.pipeline SET keep_wal_time = %(time)s, keep_wal_epochs = %(epochs)s
WHERE name = %(pipeline)s AND (keep_wal_time, keep_wal_epochs) IS DISTINCT FROM (%(time)s::interval, %(epochs)s::integer)

-- name: forget_pipeline
-- If a prepare ever started, an old process may still write to a sink: recovery sweeps for another week.
UPDATE lockstep.pipeline p
SET forgotten_at = now(), forgotten_by = %(actor)s, forgotten_reason = %(reason)s,
    swept_until = now() + CASE WHEN EXISTS (
        SELECT FROM lockstep.execution x WHERE x.pipeline = p.name AND x.role = 'prepare'
    ) THEN interval '7 days' ELSE interval '0' END
WHERE name = %(pipeline)s AND forgotten_at IS NULL

-- name: insert_pipeline_change
-- Records a manual decision about the pipeline.
INSERT INTO lockstep.pipeline_change (pipeline, change, details, actor, reason)
VALUES (%(pipeline)s, %(change)s, %(details)s, %(actor)s, %(reason)s)

-- name: find_pipeline_change
-- The last manual decision of a kind.
SELECT details FROM lockstep.pipeline_change WHERE pipeline = %(pipeline)s AND change = %(change)s ORDER BY id DESC LIMIT 1

-- name: insert_savepoint
-- Once, before the first epoch.
INSERT INTO lockstep.savepoint (pipeline, savepoint, hash, actor) VALUES (%(pipeline)s, %(savepoint)s, %(hash)s, %(actor)s)

-- name: find_savepoint
-- The savepoint that the pipeline started from, if any.
SELECT savepoint, hash FROM lockstep.savepoint WHERE pipeline = %(pipeline)s

-- name: save_planned_sink
-- Recovery sweeps these sinks, even when a later definition lacks them.
INSERT INTO lockstep.planned_sink (pipeline, sink, spec) VALUES (%(pipeline)s, %(sink)s, %(spec)s)
ON CONFLICT (pipeline, sink, spec_md5) DO UPDATE SET planned_at = now()

-- name: list_planned_sinks
-- Sinks planned in the last week: older processes no longer run, and older targets may be gone.
SELECT spec FROM lockstep.planned_sink
WHERE pipeline = %(pipeline)s AND planned_at > now() - interval '7 days' ORDER BY sink, planned_at

-- name: save_deployed_settings
-- Only writes changed settings.
INSERT INTO lockstep.deployed_setting (pipeline, sink, spec) VALUES (%(pipeline)s, %(sink)s, %(spec)s)
ON CONFLICT (pipeline, sink) DO UPDATE SET spec = EXCLUDED.spec, deployed_at = now()
WHERE deployed_setting.spec <> EXCLUDED.spec

-- name: find_settings
-- Deployed settings and the last manual override, which takes precedence.
SELECT (SELECT spec FROM lockstep.deployed_setting WHERE pipeline = %(pipeline)s AND sink = %(sink)s) AS deployed,
       (SELECT settings FROM lockstep.setting_override WHERE pipeline = %(pipeline)s AND sink = %(sink)s
        ORDER BY id DESC LIMIT 1) AS override

-- name: override_settings
-- Appends an override; the last one of a sink applies.
INSERT INTO lockstep.setting_override (pipeline, sink, settings, actor, reason)
VALUES (%(pipeline)s, %(sink)s, %(settings)s, %(actor)s, %(reason)s)

-- name: list_overrides
-- All overrides, newest first.
SELECT sink, settings, actor, reason, at FROM lockstep.setting_override WHERE pipeline = %(pipeline)s ORDER BY id DESC

-- name: list_dags
-- DAGs whose runs began one of the last ten originals of each pipeline, however many epochs were restated since.
SELECT DISTINCT p.name AS pipeline, r.dag_id
FROM unnest(%(pipelines)s::text[]) p (name)
CROSS JOIN LATERAL (SELECT id FROM lockstep.epoch WHERE pipeline = p.name AND root IS NULL ORDER BY id DESC LIMIT 10) e
JOIN lockstep.run r ON r.pipeline = p.name AND r.epoch = e.id
ORDER BY 1, 2

-- name: list_pipelines_of_dag
-- Pipelines of which the DAG's runs began one of the last ten originals, and the pipeline of any of its runs: the first one in
-- the order of the primary key, so that a single row is read.
SELECT p.name AS pipeline
FROM lockstep.pipeline p
CROSS JOIN LATERAL (SELECT id FROM lockstep.epoch WHERE pipeline = p.name AND root IS NULL ORDER BY id DESC LIMIT 10) e
JOIN lockstep.run r ON r.pipeline = p.name AND r.epoch = e.id
WHERE r.dag_id = %(dag_id)s
UNION
(SELECT pipeline FROM lockstep.run WHERE dag_id = %(dag_id)s ORDER BY dag_id, run_id LIMIT 1)
ORDER BY 1
