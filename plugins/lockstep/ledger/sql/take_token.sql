INSERT INTO lockstep.execution (pipeline, epoch, sink, attempt, role, actor)
VALUES (%(pipeline)s, %(epoch)s, %(sink)s, %(attempt)s, %(role)s, %(actor)s) RETURNING token
