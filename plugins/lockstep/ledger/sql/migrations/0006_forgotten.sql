-- A pipeline that never decided anything may be forgotten: nobody lists it any more. What is recorded of it stays, and so
-- its name stays taken: what an old process still leaves under it is known for rubbish.

ALTER TABLE lockstep.pipeline
    ADD COLUMN forgotten_at timestamptz,
    ADD COLUMN forgotten_by text,
    ADD COLUMN forgotten_why text,
    ADD COLUMN swept_until timestamptz,  -- recovery looks after it until then; null: for ever
    ADD CHECK (num_nulls(forgotten_at, forgotten_by, forgotten_why, swept_until) IN (0, 4));

CREATE FUNCTION lockstep.watch_pipeline() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.forgotten_at IS NOT NULL THEN
        RAISE EXCEPTION 'pipeline % was forgotten, and stays so', OLD.name USING ERRCODE = 'LS001';
    END IF;
    IF NEW.forgotten_at IS NOT NULL AND EXISTS (
        SELECT FROM lockstep.epoch e WHERE e.pipeline = NEW.name AND e.state <> 'void'
    ) THEN
        RAISE EXCEPTION 'pipeline % has epochs that are not void: it can not be forgotten', NEW.name USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_pipeline BEFORE UPDATE ON lockstep.pipeline FOR EACH ROW EXECUTE FUNCTION lockstep.watch_pipeline();
