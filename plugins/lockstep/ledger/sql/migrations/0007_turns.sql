-- Epochs whose rows could collide in a unique key after both were decided go one by one, from prepare to publish.
ALTER TABLE lockstep.participant ADD COLUMN turn boolean NOT NULL DEFAULT false;
-- The last line of defence, for whoever writes to the table by hand.
ALTER TABLE lockstep.participant ADD CONSTRAINT one_epoch_has_the_turn
    EXCLUDE USING gist (pipeline WITH =, epoch WITH <>) WHERE (turn AND state <> 'published');
CREATE INDEX participant_unpublished ON lockstep.participant (pipeline, epoch) WHERE state <> 'published';
