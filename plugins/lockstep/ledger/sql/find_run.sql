SELECT pipeline, epoch, attempt, restate FROM lockstep.run WHERE dag_id = %(dag_id)s AND run_id = %(run_id)s
