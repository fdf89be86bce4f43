INSERT INTO lockstep.savepoint (pipeline, savepoint, hash, actor) VALUES (%(pipeline)s, %(savepoint)s, %(hash)s, %(actor)s)
