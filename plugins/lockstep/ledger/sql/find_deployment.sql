SELECT id::text FROM lockstep.deployment
