INSERT INTO lockstep.run (dag_id, run_id, pipeline, epoch, attempt, restate)
VALUES (%(dag_id)s, %(run_id)s, %(pipeline)s, %(epoch)s, %(attempt)s, %(restate)s)
ON CONFLICT (dag_id, run_id) DO UPDATE
    SET pipeline = excluded.pipeline, epoch = excluded.epoch, attempt = excluded.attempt, restate = excluded.restate,
        started_at = now()
