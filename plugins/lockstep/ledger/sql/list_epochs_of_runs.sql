-- The epochs that the runs have begun, by the names under which each pipeline's part of a run stands.
SELECT e.* FROM unnest(%(run_ids)s::text[]) k (run_id)
JOIN lockstep.run r ON r.dag_id = %(dag_id)s AND r.run_id = k.run_id
JOIN lockstep.epoch e ON e.pipeline = r.pipeline AND e.id = r.epoch
ORDER BY e.pipeline, e.id
