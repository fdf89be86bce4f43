INSERT INTO lockstep.pipeline_change (pipeline, change, found, actor, reason)
VALUES (%(pipeline)s, %(change)s, %(found)s, %(actor)s, %(reason)s)
