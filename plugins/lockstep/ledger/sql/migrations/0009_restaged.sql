-- A decided epoch whose WAL was damaged, staged again: where its rows are read from now on. The decision stays as it is.

ALTER TABLE lockstep.epoch
    ADD COLUMN restaged_wal  text,
    ADD COLUMN restaged_hash text CHECK (restaged_hash ~ '^[0-9a-f]{64}$'),
    ADD COLUMN reordered     boolean NOT NULL DEFAULT false,  -- the same rows, perhaps in another order
    ADD CONSTRAINT what_was_restaged_is_whole CHECK ((restaged_wal IS NULL) = (restaged_hash IS NULL));

CREATE FUNCTION lockstep.watch_restage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (OLD.state = 'committed' AND NEW.state = 'committed' AND NEW.restaged_wal IS NOT NULL
            AND current_setting('lockstep.role', true) = 'operator') THEN
        RAISE EXCEPTION 'only a person has a committed epoch staged again, this one is %', OLD.state USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_restage BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN ((NEW.restaged_wal, NEW.restaged_hash, NEW.reordered) IS DISTINCT FROM (OLD.restaged_wal, OLD.restaged_hash, OLD.reordered))
    EXECUTE FUNCTION lockstep.watch_restage();
