SELECT name, identity, last_epoch FROM lockstep.pipeline ORDER BY name
