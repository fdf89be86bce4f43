INSERT INTO lockstep.run (dag_id, run_id, pipeline, epoch, attempt)
VALUES (%(dag_id)s, %(run_id)s, %(pipeline)s, %(epoch)s, %(attempt)s)
ON CONFLICT (dag_id, run_id) DO UPDATE
    SET pipeline = excluded.pipeline, epoch = excluded.epoch, attempt = excluded.attempt, started_at = now()
