-- Generations: an epoch that every sink shows may be replaced by another one of its range, with that one's decision.
-- The number of epochs that a ledger has is the time that this takes: it reads each once, and builds the index of
-- intervals anew, in which only originals stand.

ALTER TABLE lockstep.epoch
    ADD COLUMN root             bigint,  -- the original of its range; null: this is it
    ADD COLUMN generation       int NOT NULL DEFAULT 0,
    ADD COLUMN replaces         bigint,  -- whose place it takes with its decision
    ADD COLUMN restated_because text,
    ADD FOREIGN KEY (pipeline, replaces) REFERENCES lockstep.epoch,
    ADD CONSTRAINT a_generation_is_of_a_root CHECK (
        CASE generation WHEN 0 THEN num_nonnulls(root, replaces, restated_because) = 0
                        ELSE generation > 0 AND num_nulls(root, replaces, restated_because) = 0 END);

-- What doesn't change is found in the order of its root; a void one has no number: the next one takes it.
CREATE UNIQUE INDEX one_epoch_of_a_generation ON lockstep.epoch (pipeline, root, generation)
    WHERE root IS NOT NULL AND state <> 'void';
CREATE INDEX epoch_generations ON lockstep.epoch (pipeline, root) WHERE root IS NOT NULL;
CREATE INDEX epoch_successors ON lockstep.epoch (pipeline, id) WHERE root IS NOT NULL;
CREATE INDEX epoch_replaced ON lockstep.epoch (pipeline, id) WHERE state = 'replaced';
DROP INDEX lockstep.epoch_unfinished;
CREATE INDEX epoch_unfinished ON lockstep.epoch (pipeline, id) WHERE state NOT IN ('cleaned', 'replaced', 'void');

-- Intervals are excluded from one another by their originals.
DO $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE lockstep.epoch DROP CONSTRAINT %I', conname)
             FROM pg_constraint WHERE conrelid = 'lockstep.epoch'::regclass AND contype = 'x');
END $$;
ALTER TABLE lockstep.epoch ADD CONSTRAINT an_interval_has_one_root
    EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (span IS NOT NULL AND generation = 0);

INSERT INTO lockstep.legal_transition VALUES ('epoch', 'cleaned', 'replaced', 'commit');

CREATE FUNCTION lockstep.watch_generation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.root, NEW.generation, NEW.replaces, NEW.restated_because)
           IS DISTINCT FROM (OLD.root, OLD.generation, OLD.replaces, OLD.restated_because) THEN
            RAISE EXCEPTION 'an epoch keeps its generation' USING ERRCODE = 'LS001';
        END IF;
        IF NEW.state = 'replaced' AND OLD.state <> 'replaced' AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.root = coalesce(NEW.root, NEW.id) AND e.replaces = NEW.id AND e.state = 'committed'
        ) THEN
            RAISE EXCEPTION 'nothing takes the place of epoch % of %', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.generation > 0 THEN
        SELECT * INTO before FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.id = NEW.replaces;
        IF before.state IS DISTINCT FROM 'cleaned' OR (NEW.root, NEW.generation) <> (coalesce(before.root, before.id), before.generation + 1)
           OR NEW.span IS DISTINCT FROM before.span THEN
            RAISE EXCEPTION 'epoch % of % can not take the place of epoch %, which is %',
                NEW.id, NEW.pipeline, NEW.replaces, before.state USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_generation BEFORE INSERT OR UPDATE ON lockstep.epoch
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_generation();

-- The last line of defence, for whoever decides by hand: one decision ends the one life and begins the other.
CREATE FUNCTION lockstep.require_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT e.state FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.id = NEW.replaces) <> 'replaced' THEN
        RAISE EXCEPTION 'epoch % of % was decided, and epoch %, whose place it takes, is not replaced', NEW.id, NEW.pipeline, NEW.replaces
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER require_replaced AFTER UPDATE ON lockstep.epoch DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.replaces IS NOT NULL AND NEW.state = 'committed' AND OLD.state = 'staged')
    EXECUTE FUNCTION lockstep.require_replaced();
