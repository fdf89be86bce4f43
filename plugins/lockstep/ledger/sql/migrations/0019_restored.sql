-- Way back: a generation may show the rows of an earlier life of its range again, from the sealed WAL that was kept of it.
-- That one stays for as long as the generation is unfinished, or keeps its own WAL, which refers to it.

ALTER TABLE lockstep.epoch
    ADD COLUMN restores bigint,  -- the life whose rows it shows again; null: it has read its range
    ADD FOREIGN KEY (pipeline, restores) REFERENCES lockstep.epoch,
    ADD CONSTRAINT only_a_generation_restores CHECK (restores IS NULL OR generation > 0);
CREATE INDEX epoch_restoring ON lockstep.epoch (pipeline, restores) WHERE restores IS NOT NULL;

CREATE FUNCTION lockstep.watch_restoring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'an epoch keeps its generation, and whose rows it shows' USING ERRCODE = 'LS001';
    END IF;
    IF NOT EXISTS (
        SELECT FROM lockstep.kept_wal k JOIN lockstep.epoch e ON (e.pipeline, e.id) = (k.pipeline, k.epoch)
        WHERE (k.pipeline, k.epoch) = (NEW.pipeline, NEW.restores) AND k.expired_at IS NULL
          AND e.state = 'replaced' AND coalesce(e.root, e.id) = NEW.root
    ) THEN
        RAISE EXCEPTION 'epoch % of % can not show the rows of epoch % again: its WAL is not kept', NEW.id, NEW.pipeline, NEW.restores
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_restoring BEFORE INSERT ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.restores IS NOT NULL) EXECUTE FUNCTION lockstep.watch_restoring();
CREATE TRIGGER keep_restoring BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.restores IS DISTINCT FROM OLD.restores) EXECUTE FUNCTION lockstep.watch_restoring();

-- The last line of defence, whoever writes to the tables.
CREATE FUNCTION lockstep.keep_what_is_referred_to() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (TG_OP = 'DELETE' OR (NEW.expired_at IS NOT NULL AND OLD.expired_at IS NULL)) AND EXISTS (
        SELECT FROM lockstep.epoch e
        WHERE e.pipeline = OLD.pipeline AND e.restores = OLD.epoch
          AND (e.state IN ('planned', 'staged', 'committed', 'published')
               OR EXISTS (SELECT FROM lockstep.kept_wal k
                          WHERE (k.pipeline, k.epoch) = (e.pipeline, e.id) AND k.expired_at IS NULL))
    ) THEN
        RAISE EXCEPTION 'the WAL of epoch % of % is referred to: it stays', OLD.epoch, OLD.pipeline USING ERRCODE = 'LS001';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER keep_what_is_referred_to BEFORE UPDATE OR DELETE ON lockstep.kept_wal
    FOR EACH ROW EXECUTE FUNCTION lockstep.keep_what_is_referred_to();
