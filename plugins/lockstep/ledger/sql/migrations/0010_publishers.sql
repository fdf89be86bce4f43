-- Until when whoever publishes has shown that it is at work. For messages alone: no guard reads it.
ALTER TABLE lockstep.participant ADD COLUMN lease_until timestamptz;
