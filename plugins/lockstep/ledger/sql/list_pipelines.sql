SELECT name, identity, last_epoch, forgotten_at, forgotten_by, forgotten_why
FROM lockstep.pipeline WHERE forgotten_at IS NULL ORDER BY name
