-- Epochs of a cursor may be replaced, too. One that keeps no state is replaced singly: the life that takes its place reads the
-- same range, and stands aside of the order in which epochs follow one another. With state all from one epoch on are replaced
-- as one, which takes their place in that order: the next epoch goes on from the state that it decides. It shows no earlier
-- rows again: their WAL has no state for it.

ALTER TABLE lockstep.epoch
    ADD COLUMN replaces_to bigint,  -- the last of those whose place it takes, from `replaces` on; null: that one alone
    ADD CONSTRAINT what_is_replaced_has_an_end CHECK (
        replaces_to IS NULL OR (replaces IS NOT NULL AND replaces_to >= replaces AND span IS NULL AND restores IS NULL));
CREATE INDEX epoch_of_several ON lockstep.epoch (pipeline, id) WHERE replaces_to IS NOT NULL;

CREATE OR REPLACE FUNCTION lockstep.watch_generation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.root, NEW.generation, NEW.replaces, NEW.replaces_to, NEW.restated_because)
           IS DISTINCT FROM (OLD.root, OLD.generation, OLD.replaces, OLD.replaces_to, OLD.restated_because) THEN
            RAISE EXCEPTION 'an epoch keeps its generation' USING ERRCODE = 'LS001';
        END IF;
        IF NEW.state = 'replaced' AND OLD.state <> 'replaced' AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.root = coalesce(NEW.root, NEW.id) AND e.replaces = NEW.id AND e.state = 'committed'
        ) AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.id > NEW.id AND e.replaces_to IS NOT NULL AND e.state = 'committed'
              AND NEW.id BETWEEN e.replaces AND e.replaces_to
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
        IF NEW.replaces_to IS NOT NULL AND EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.id >= NEW.replaces AND e.id <> NEW.id
              AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
              AND (e.state NOT IN ('cleaned', 'replaced', 'void') OR (e.id > NEW.replaces_to AND e.state = 'cleaned'))
        ) THEN
            RAISE EXCEPTION 'epoch % of % can not take the place of all from % to %', NEW.id, NEW.pipeline, NEW.replaces, NEW.replaces_to
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION lockstep.require_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    standing bigint;
BEGIN
    SELECT min(e.id) INTO standing FROM lockstep.epoch e
    WHERE e.pipeline = NEW.pipeline AND e.id BETWEEN NEW.replaces AND coalesce(NEW.replaces_to, NEW.replaces)
      AND (NEW.replaces_to IS NULL OR e.generation = 0 OR e.replaces_to IS NOT NULL)
      AND e.state NOT IN ('replaced', 'void');
    IF standing IS NOT NULL THEN
        RAISE EXCEPTION 'epoch % of % was decided, and epoch %, whose place it takes, is not replaced', NEW.id, NEW.pipeline, standing
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NULL;
END $$;

-- The epoch before, as `find_predecessor.sql` has it.
CREATE OR REPLACE FUNCTION lockstep.watch_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF (NEW.wal IS NULL AND NEW.based_on IS NOT NULL)
       OR (OLD.wal IS NOT NULL AND NEW.wal IS NOT NULL AND NEW.based_on IS DISTINCT FROM OLD.based_on) THEN
        RAISE EXCEPTION 'what the state of an epoch is based on is set with its WAL' USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state = 'committed' AND OLD.state = 'staged' AND NEW.span IS NULL THEN
        IF NEW.generation > 0 AND NEW.replaces_to IS NULL THEN
            IF NEW.based_on IS NOT NULL THEN
                RAISE EXCEPTION 'epoch % of % stands aside of the order, and can have no state', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
            END IF;
            RETURN NEW;
        END IF;
        SELECT * INTO before FROM lockstep.epoch e
        WHERE e.pipeline = NEW.pipeline AND e.id < CASE WHEN NEW.replaces_to IS NULL THEN NEW.id ELSE NEW.replaces END
          AND e.state NOT IN ('replaced', 'void') AND (e.generation = 0 OR e.replaces_to IS NOT NULL) ORDER BY e.id DESC LIMIT 1;
        IF (NEW.based_on IS NULL AND before.based_on IS NOT NULL)
           OR (NEW.based_on IS NOT NULL AND NEW.based_on <> coalesce(before.manifest_hash, '')) THEN
            RAISE EXCEPTION 'the state of epoch % of % was not made from that of the epoch before', NEW.id, NEW.pipeline
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
