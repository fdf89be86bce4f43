-- A DAG moves one pipeline: any of its runs tells which. In the order of the key, so that none but one is read.
SELECT pipeline FROM lockstep.run WHERE dag_id = %(dag_id)s ORDER BY dag_id, run_id LIMIT 1
