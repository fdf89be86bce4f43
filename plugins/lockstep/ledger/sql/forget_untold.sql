-- What no sink shows any more is no news, and for whom something else is told; and what nobody could be told of for so long.
DELETE FROM lockstep.untold u USING lockstep.epoch e
WHERE (e.pipeline, e.id) = (u.pipeline, u.epoch) AND (e.state = 'replaced' OR u.shown_at < now() - %(patience)s)
RETURNING u.*, e.state
