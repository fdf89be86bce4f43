INSERT INTO lockstep.pipeline (name, identity) VALUES (%(pipeline)s, %(identity)s) ON CONFLICT (name) DO NOTHING
