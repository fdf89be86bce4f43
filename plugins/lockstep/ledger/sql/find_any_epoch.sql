SELECT pipeline, id FROM lockstep.epoch LIMIT 1
