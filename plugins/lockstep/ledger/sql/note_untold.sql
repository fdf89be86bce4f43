-- Of a pipeline that no DAG has begun one of the youngest original epochs of, no asset is there to be told of anything.
INSERT INTO lockstep.untold (pipeline, epoch, sink, shown_by)
SELECT %(pipeline)s, %(epoch)s, %(sink)s, %(actor)s
WHERE EXISTS (
    SELECT FROM (SELECT id FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND root IS NULL ORDER BY id DESC LIMIT 10) e
    JOIN lockstep.run r ON r.pipeline = %(pipeline)s AND r.epoch = e.id
    WHERE r.dag_id <> ALL (%(no_dags)s)
)
ON CONFLICT DO NOTHING
