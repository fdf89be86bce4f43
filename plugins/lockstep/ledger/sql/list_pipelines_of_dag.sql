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
