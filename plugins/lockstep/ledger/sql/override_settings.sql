INSERT INTO lockstep.setting_override (pipeline, sink, settings, actor, reason)
VALUES (%(pipeline)s, %(sink)s, %(settings)s, %(actor)s, %(reason)s)
