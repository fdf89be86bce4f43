INSERT INTO lockstep.planned_sink (pipeline, sink, spec) VALUES (%(pipeline)s, %(sink)s, %(spec)s)
ON CONFLICT (pipeline, sink, spec_md5) DO UPDATE SET planned_at = now()
