INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan, owner_dag, owner_run, lease_until,
                            root, generation, replaces, replaces_to, restated_because, restores)
VALUES (%(pipeline)s, %(epoch)s, CASE WHEN %(start)s::timestamptz IS NOT NULL THEN tstzrange(%(start)s, %(end)s) END, 'planned', %(attempt)s, %(plan)s,
        %(dag_id)s, %(run_id)s, now() + %(lease)s, %(root)s, %(generation)s, %(replaces)s, %(replaces_to)s, %(because)s, %(restores)s)
RETURNING *
