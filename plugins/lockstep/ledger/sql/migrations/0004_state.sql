-- Keyed state: an epoch's version is made from the one of the epoch before, and decided with it.

ALTER TABLE lockstep.epoch ADD COLUMN based_on text;  -- its predecessor's manifest hash, '' for none; NULL without state

CREATE INDEX epoch_with_state ON lockstep.epoch (pipeline, id) WHERE based_on IS NOT NULL;

CREATE FUNCTION lockstep.watch_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF (NEW.wal IS NULL AND NEW.based_on IS NOT NULL)
       OR (OLD.wal IS NOT NULL AND NEW.wal IS NOT NULL AND NEW.based_on IS DISTINCT FROM OLD.based_on) THEN
        RAISE EXCEPTION 'what the state of an epoch is based on is set with its WAL' USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state = 'committed' AND OLD.state = 'staged' AND NEW.span IS NULL THEN
        SELECT * INTO before FROM lockstep.epoch e
        WHERE e.pipeline = NEW.pipeline AND e.id < NEW.id AND e.state <> 'void' ORDER BY e.id DESC LIMIT 1;
        IF (NEW.based_on IS NULL AND before.based_on IS NOT NULL)
           OR (NEW.based_on IS NOT NULL AND NEW.based_on <> coalesce(before.manifest_hash, '')) THEN
            RAISE EXCEPTION 'the state of epoch % of % was not made from that of the epoch before', NEW.id, NEW.pipeline
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_state BEFORE UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_state();

-- What a pipeline starts with, in place of an epoch before its first.
CREATE TABLE lockstep.savepoint (
    pipeline   text PRIMARY KEY REFERENCES lockstep.pipeline,
    savepoint  jsonb NOT NULL,  -- positions and files, as its folder describes them
    hash       text NOT NULL,
    actor      text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER keep_savepoint BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.savepoint EXECUTE FUNCTION lockstep.refuse();
