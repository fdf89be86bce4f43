-- Of all pipelines, the oldest first, with the runs that came to the epoch: one of them may be about to tell it.
SELECT u.*, now() - u.shown_at AS age,
       ARRAY(SELECT ARRAY[r.dag_id, r.run_id] FROM lockstep.run r WHERE r.pipeline = u.pipeline AND r.epoch = u.epoch) AS runs
FROM lockstep.untold u ORDER BY u.shown_at, u.pipeline, u.epoch, u.sink LIMIT %(limit)s
