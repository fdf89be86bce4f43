-- A ledger that was lost is made anew in an empty one: it takes the old one's id, by which sinks and staging know it. That is
-- a person's doing, and only while no epoch is there that goes by another id.

DROP TRIGGER keep_deployment ON lockstep.deployment;
CREATE TRIGGER keep_deployment BEFORE DELETE OR TRUNCATE ON lockstep.deployment EXECUTE FUNCTION lockstep.refuse();

CREATE FUNCTION lockstep.watch_deployment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('lockstep.role', true), '') <> 'operator' OR EXISTS (SELECT FROM lockstep.epoch) THEN
        RAISE EXCEPTION 'the id of a ledger that has epochs stays' USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_deployment BEFORE UPDATE ON lockstep.deployment
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_deployment();

ALTER TABLE lockstep.pipeline_change DROP CONSTRAINT pipeline_change_change_check;
ALTER TABLE lockstep.pipeline_change ADD CONSTRAINT pipeline_change_change_check
    CHECK (change IN ('redefined', 'renumbered', 'rebuilt'));
