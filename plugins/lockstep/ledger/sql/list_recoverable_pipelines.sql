-- Forgotten ones too, as long as something of theirs may turn up in a sink.
SELECT name FROM lockstep.pipeline WHERE forgotten_at IS NULL OR swept_until > now() ORDER BY name
