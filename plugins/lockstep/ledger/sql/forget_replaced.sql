-- What no sink shows any more is no news: of what took its place something else is told.
DELETE FROM lockstep.untold u USING lockstep.epoch e
WHERE (e.pipeline, e.id) = (u.pipeline, u.epoch) AND e.state = 'replaced'
