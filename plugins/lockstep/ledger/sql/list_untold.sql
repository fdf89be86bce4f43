-- Of all pipelines, a sink's oldest first, and each sink's first before any sink's second: one of which nothing can be told
-- keeps none from its turn. With the runs that came to the epoch: one of them may be about to tell it.
SELECT u.*, now() - u.shown_at AS age, now() - u.missed_at AS missed,
       ARRAY(SELECT ARRAY[r.dag_id, r.run_id] FROM lockstep.run r WHERE r.pipeline = u.pipeline AND r.epoch = u.epoch) AS runs
FROM (SELECT *, row_number() OVER (PARTITION BY pipeline, sink ORDER BY shown_at, epoch) AS place FROM lockstep.untold) u
ORDER BY u.place, u.shown_at, u.pipeline, u.epoch, u.sink LIMIT %(limit)s
