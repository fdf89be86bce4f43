-- What comparing a sink with the sealed WAL came to. Publication compares: a vote has the WAL's rows, and its marker stands
-- with them. A person's word doesn't, and what `lockstep verify` finds amiss is unproven until it agrees again.
ALTER TABLE lockstep.participant
    ADD COLUMN unproven text,            -- of a published one: why nothing proves that the sink shows the rows
    ADD COLUMN compared_at timestamptz,  -- when somebody last read the sink back
    ADD COLUMN compared_by text;
CREATE INDEX participant_unproven ON lockstep.participant (pipeline, epoch) WHERE unproven IS NOT NULL;
UPDATE lockstep.participant SET unproven = 'a person has said that it was applied' WHERE publication = 'resolved';
