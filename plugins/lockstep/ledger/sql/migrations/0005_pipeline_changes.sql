-- What a person has said of a pipeline as a whole: another definition is the one, its numbers begin anew.

CREATE TABLE lockstep.pipeline_change (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline text NOT NULL REFERENCES lockstep.pipeline,
    change   text NOT NULL CHECK (change IN ('redefined', 'renumbered')),
    found    jsonb NOT NULL,  -- what was there, or what it is from now on
    actor    text NOT NULL,
    reason   text NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pipeline_change_last ON lockstep.pipeline_change (pipeline, change, id);
CREATE TRIGGER keep_pipeline_change BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.pipeline_change
    EXECUTE FUNCTION lockstep.refuse();
