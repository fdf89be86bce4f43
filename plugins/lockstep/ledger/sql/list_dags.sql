-- The DAGs whose runs have begun one of the youngest original epochs of each pipeline: a person may have restated many.
SELECT DISTINCT p.name AS pipeline, r.dag_id
FROM unnest(%(pipelines)s::text[]) p (name)
CROSS JOIN LATERAL (SELECT id FROM lockstep.epoch WHERE pipeline = p.name AND root IS NULL ORDER BY id DESC LIMIT 10) e
JOIN lockstep.run r ON r.pipeline = p.name AND r.epoch = e.id
ORDER BY 1, 2
