SELECT sink, source_state, target_state, attempt, token, role, actor, reason, at
FROM lockstep.transition WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s ORDER BY id
