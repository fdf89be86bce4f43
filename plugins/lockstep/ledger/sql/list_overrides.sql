SELECT sink, settings, actor, reason, at FROM lockstep.setting_override WHERE pipeline = %(pipeline)s ORDER BY id DESC
