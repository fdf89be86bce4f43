-- Why a run was to restate when it got its epoch: that may be one which another run, for a reason of its own, has begun.

ALTER TABLE lockstep.run ADD COLUMN restate text;
