INSERT INTO lockstep.deployed_setting (pipeline, sink, spec) VALUES (%(pipeline)s, %(sink)s, %(spec)s)
ON CONFLICT (pipeline, sink) DO UPDATE SET spec = EXCLUDED.spec, deployed_at = now()
WHERE deployed_setting.spec <> EXCLUDED.spec
